import ArgumentParser

/// A command about the mode of the queue, which belongs to the process that owns it.
protocol QueueModeCommand: AsyncParsableCommand {
    var common: CommonOptions { get }
}

extension QueueModeCommand {
    func run() async throws {
        // Whoever opens the queue here owns it, so nobody else does; one that another process owns can't be opened.
        try await common.withOwnedQueue { _ in }
        throw CommandFailure(.unfit, "No process owns the queue, so there is nothing to start or stop. To run it: transferq run")
    }
}

struct QueueStartCommand: QueueModeCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Lets the queue of the process that owns it start sessions.",
        discussion: "Example: transferq queue start")

    @OptionGroup var common: CommonOptions
}

struct QueueStopCommand: QueueModeCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Interrupts what runs in the process that owns the queue, and starts nothing new.",
        discussion: "Example: transferq queue stop")

    @OptionGroup var common: CommonOptions
}

struct QueueDrainCommand: QueueModeCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain", abstract: "Lets what runs finish in the process that owns the queue, and starts nothing new.",
        discussion: "Example: transferq queue drain")

    @OptionGroup var common: CommonOptions
}
