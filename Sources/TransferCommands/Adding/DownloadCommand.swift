import ArgumentParser
import TransferCore

struct DownloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download", abstract: "Adds a session that downloads files and folders, and prints its ID.",
        discussion: """
            All paths form one session and are transferred in the given order. A folder arrives under its own name, with its subfolders; the path / \
            stands for the whole folder of the endpoint, whose content arrives directly in the destination, so name an empty folder with --to. A \
            folder is listed when the session runs. "transferq run" or the agent starts the transfer.

            Without --overwrite, a download never replaces an existing file.

            Example: transferq download studio reels/day1.mov stills/ --to ~/Movies
            Example: transferq download nas / --to ~/nas
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "The account to download from.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String

    @Argument(
        help:
            "Remote files and folders below the endpoint's folder, / for that folder itself, or - for paths from standard input, separated by NUL or line breaks."
    )
    var paths: [PathArgument] = []

    @Flag(help: "Also read paths from standard input, like -.")
    var stdin = false

    @Option(
        help: ArgumentHelp("The destination, a local folder (default: the working directory).", valueName: "folder"),
        completion: .directory)
    var to: String?

    @OptionGroup(title: "Session") var options: NewSessionOptions
    @OptionGroup(title: "Download") var download: DownloadOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions

    private var sessions: NewSessions {
        NewSessions(
            common: common, options: options, transfer: transfer, direction: .download, download: download, account: account,
            paths: paths, readsPaths: stdin, destination: to)
    }

    func validate() throws { try sessions.validate() }

    func run() async throws { try await sessions.add() }
}
