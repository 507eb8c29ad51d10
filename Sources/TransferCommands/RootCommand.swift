import ArgumentParser

struct RootCommand: AsyncParsableCommand {
    /// The version of `transferq` (semver.org). The package and the changelog use the same version.
    static let version = "0.2.0"

    static let configuration = CommandConfiguration(
        commandName: "transferq",
        abstract: "A durable file transfer queue.",
        discussion: """
            The queue's storage folder is the first of --store, $TRANSFERQ_STORE, $XDG_STATE_HOME/transferq and ~/.local/state/transferq that \
            is set. Only "run", "agent" and "stream" transfer files. All other commands work whether or not a process owns the \
            queue, except "queue start", "queue stop" and "queue drain", which need an owner.

            With --fleet URL or $TRANSFERQ_FLEET, commands work on a queue of several hosts in a PostgreSQL database; see transferq-fleet --help.

            Example: transferq account add studio https://upload.example.com/files/ --token-env STUDIO_TOKEN
            Example: transferq upload studio reel.mov
            Example: transferq run

            Exit status:
              0    success
              1    a session failed or needs user action, a check failed, a
                   question was not answered with yes, or the output can't be
                   written
              2    wrong usage, or a file can't be read; nothing was changed
              3    the queue can't be opened, or its owner does not respond
              4    no such session, account or index, or the operation is not
                   valid in the current state
              130  interrupted

            Messages and their solutions: \(Troubleshooting.location)

            Shell completion, including sessions and accounts: transferq --generate-completion-script bash (or zsh, fish)
            """,
        version: "transferq \(version)",
        groupedSubcommands: [
            CommandGroup(
                name: "Transfer",
                subcommands: [
                    AccountCommand.self, UploadCommand.self, DownloadCommand.self, AddCommand.self, EnqueueCommand.self,
                    StreamCommand.self, RunCommand.self, AgentCommand.self,
                ]),
            CommandGroup(
                name: "Inspection",
                subcommands: [ListCommand.self, ShowCommand.self, WhyCommand.self, WatchCommand.self, WebCommand.self]),
            CommandGroup(
                name: "Order", subcommands: [NowCommand.self, NextCommand.self, MoveCommand.self, YieldCommand.self]),
            CommandGroup(
                name: "Control",
                subcommands: [
                    PauseCommand.self, ResumeCommand.self, HoldCommand.self, ReleaseCommand.self, CancelCommand.self, RetryCommand.self,
                    RemoveCommand.self, SetCommand.self,
                ]),
            CommandGroup(
                name: "Maintenance", subcommands: [QueueCommand.self, QuarantineCommand.self, DoctorCommand.self]),
        ])
}
