import ArgumentParser

struct RootCommand: AsyncParsableCommand {
    static let version = "0.1.0"

    static let configuration = CommandConfiguration(
        commandName: "transferq",
        abstract: "Moves files in order and never loses its place.",
        discussion: """
            The queue is kept in a folder: --store, else $TRANSFERQ_STORE, else $XDG_STATE_HOME/transferq, else ~/.local/state/transferq. \
            Only "run" transfers anything.
            """,
        version: version,
        subcommands: [
            AccountCommand.self, AddCommand.self, RunCommand.self, ListCommand.self, ShowCommand.self, RemoveCommand.self,
            DoctorCommand.self,
        ])
}
