import ArgumentParser

struct QueueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "The queue as a whole: its figures and its limits.",
        discussion: "Example: transferq queue set --rate 5M",
        subcommands: [
            QueueStatusCommand.self, QueueSetCommand.self, QueueStartCommand.self, QueueStopCommand.self, QueueDrainCommand.self,
        ])
}
