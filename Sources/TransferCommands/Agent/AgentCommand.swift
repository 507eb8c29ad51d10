import ArgumentParser

struct AgentCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent", abstract: "Runs the queue in the background.",
        discussion: """
            The agent keeps running after its shell exits. Other commands reach the queue through the agent, whose log is agent.log in the storage \
            folder.

            Example: transferq agent start
            """,
        subcommands: [
            AgentStartCommand.self, AgentStopCommand.self, AgentStatusCommand.self, AgentUnitCommand.self, AgentRunCommand.self,
        ])
}
