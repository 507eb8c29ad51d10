import ArgumentParser
import TransferCore

struct DownloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download", abstract: "Adds a session that downloads files and folders.",
        discussion: """
            Prints the ID of the session. All paths form one session and are transferred in the given order, by "transferq run" or the agent. \
            If the folder of --to is missing, the command creates it, but not its missing parents. \
            The article "Options of transfers" \
            explains the options.

            Example: transferq download studio reels/day1.mov stills/ --to ~/Movies
            Example: transferq download nas / --to ~/nas
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "The account to download from.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String

    @Argument(
        help: "Remote paths; / for everything, - for standard input."
    )
    var paths: [PathArgument] = []

    @Flag(help: "Also read paths from standard input, like -.")
    var stdin = false

    @Option(
        help: ArgumentHelp("The local folder (default: the working directory).", valueName: "folder"),
        completion: .directory)
    var to: String?

    @OptionGroup(title: "Session") var options: NewSessionOptions
    @OptionGroup(title: "Download") var download: DownloadOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions

    private var sessions: SessionSubmission {
        SessionSubmission(
            common: common, options: options, transfer: transfer, direction: .download, download: download, account: account,
            paths: paths, hasStdinFlag: stdin, destination: to)
    }

    func validate() throws { try sessions.validate() }

    func run() async throws { try await sessions.add() }
}
