import ArgumentParser

struct QueueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "Shows and controls the queue as a whole.",
        discussion: "Example: transferq queue set --rate 5M",
        subcommands: [
            QueueStatusCommand.self, QueueSetCommand.self, QueueStartCommand.self, QueueStopCommand.self, QueueDrainCommand.self,
        ])
}
