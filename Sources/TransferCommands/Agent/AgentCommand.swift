import ArgumentParser

struct AgentCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent", abstract: "The queue in the background: it goes on when the shell that started it is gone.",
        discussion: """
            All commands work on the queue while the agent runs it. What it does is in agent.log in the folder of the queue.

            Example: transferq agent start
            """,
        subcommands: [
            AgentStartCommand.self, AgentStopCommand.self, AgentStatusCommand.self, AgentUnitCommand.self, AgentRunCommand.self,
        ])
}
