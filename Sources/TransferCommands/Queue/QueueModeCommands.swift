import ArgumentParser
import TransferControl
import TransferKit
import TransferOutput

/// A command that starts, stops or drains the queue in the process that owns it.
protocol QueueModeCommand: AsyncParsableCommand {
    var common: CommonOptions { get }
    /// Whether the command can cause the owner to exit.
    var endsOwner: Bool { get }
    func change(_ queue: any ControllableQueue) async throws
}

extension QueueModeCommand {
    func run() async throws {
        guard let mode = try await newMode() else {
            throw CommandFailure(
                .rejected,
                "No process owns the queue, so it can't be started or stopped. To run it: transferq run, or transferq agent start")
        }
        if common.json { await CommandContext.current.output.write(["mode": .string(mode.rawValue)] as JSONValue) }
    }

    /// Changes the mode and returns the new mode; nil if no process owns the queue.
    private func newMode() async throws -> QueueStatus.Mode? {
        if let queue = CommandContext.current.queue { return try await changedMode(of: queue) }
        return try await common.withOwner { try await changedMode(of: $0) }
    }

    /// Changes the mode and returns the new mode. If the owner exits because its queue stops, the new mode is `stopped`.
    private func changedMode(of queue: any ControllableQueue) async throws -> QueueStatus.Mode {
        do {
            try await change(queue)
            return try await queue.status().mode
        } catch let error as QueueError where error.isLossOfOwner && endsOwner {
            return .stopped
        }
    }
}

struct QueueStartCommand: QueueModeCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Starts the queue in the process that owns it.",
        discussion: "Example: transferq queue start")

    @OptionGroup var common: CommonOptions

    var endsOwner: Bool { false }

    func change(_ queue: any ControllableQueue) async throws { try await queue.start() }
}

struct QueueStopCommand: QueueModeCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Stops the queue, and interrupts running sessions.",
        discussion: """
            Returns when no session is running. A "transferq run" without --forever then exits.

            Example: transferq queue stop
            """)

    @OptionGroup var common: CommonOptions

    var endsOwner: Bool { true }

    func change(_ queue: any ControllableQueue) async throws { _ = try await queue.stopAndWait(.interrupt, deadline: nil) }
}

struct QueueDrainCommand: QueueModeCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain", abstract: "Finishes running sessions, and starts no others.",
        discussion: """
            Returns immediately. A "transferq run" without --forever exits when the running sessions have finished.

            Example: transferq queue drain
            """)

    @OptionGroup var common: CommonOptions

    var endsOwner: Bool { true }

    func change(_ queue: any ControllableQueue) async throws { try await queue.stop(.drain, deadline: nil) }
}
