import ArgumentParser
import TransferControl
import TransferKit

/// A command about the mode of the queue, which belongs to the process that owns it.
protocol QueueModeCommand: AsyncParsableCommand {
    var common: CommonOptions { get }
    /// Whether the process that owns the queue may end because of it.
    var endsOwner: Bool { get }
    func change(_ queue: RemoteTransferQueue) async throws
}

extension QueueModeCommand {
    func run() async throws {
        guard let mode = try await common.withOwner({ try await changedMode(of: $0) }) else {
            throw CommandFailure(
                .unfit,
                "No process owns the queue, so there is nothing to start or stop. To run it: transferq run, or transferq agent start")
        }
        if common.json { await CommandContext.current.output.write(["mode": .string(mode.rawValue)] as JSONValue) }
    }

    /// Changes the mode, and returns the one that it is now. A process that ends because its queue stops has stopped it.
    private func changedMode(of queue: RemoteTransferQueue) async throws -> QueueStatus.Mode {
        do {
            try await change(queue)
            return try await queue.status().mode
        } catch let error as QueueError where error.isEndOfOwner && endsOwner {
            return .stopped
        }
    }
}

struct QueueStartCommand: QueueModeCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Lets the queue of the process that owns it start sessions.",
        discussion: "Example: transferq queue start")

    @OptionGroup var common: CommonOptions

    var endsOwner: Bool { false }

    func change(_ queue: RemoteTransferQueue) async throws { try await queue.start() }
}

struct QueueStopCommand: QueueModeCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Interrupts what runs in the process that owns the queue, and starts nothing new.",
        discussion: """
            Returns when nothing runs any more. A "transferq run" without --forever ends with that, as nothing can start any more.

            Example: transferq queue stop
            """)

    @OptionGroup var common: CommonOptions

    var endsOwner: Bool { true }

    func change(_ queue: RemoteTransferQueue) async throws { try await queue.stopAndWait(.interrupt) }
}

struct QueueDrainCommand: QueueModeCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain", abstract: "Lets what runs finish in the process that owns the queue, and starts nothing new.",
        discussion: """
            Returns at once. A "transferq run" without --forever ends when what runs has finished.

            Example: transferq queue drain
            """)

    @OptionGroup var common: CommonOptions

    var endsOwner: Bool { true }

    func change(_ queue: RemoteTransferQueue) async throws { try await queue.stop(.drain) }
}
