import ArgumentParser
import TransferCore

struct UploadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload", abstract: "Adds a session that uploads files and folders, and prints its ID.",
        discussion: """
            All paths form one session and are transferred in the given order. A folder arrives under its own name, with its subfolders. It is read \
            when the session runs. "transferq run" or the agent starts the transfer. If a path can't be read, the command adds nothing.

            Without --overwrite, an SFTP upload never replaces an existing file. A plain HTTP server decides whether an upload replaces a file, so \
            accounts with such an endpoint reject every --overwrite policy except "always". A tus server stores each file as a new upload.

            Example: transferq upload studio reel.mov stills/ --to 2025/june --name 'Day one' --next
            Example: transferq upload site --form title='Day one' --form reel=@day1.mov --form 'papers=@a.pdf;type=application/pdf'
            Example: find . -name '*.wav' -print0 | transferq upload studio -
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "The account to upload to.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String

    @Argument(help: "Files and folders, or - for paths from standard input, separated by NUL or line breaks.")
    var paths: [PathArgument] = []

    @Flag(help: "Also read paths from standard input, like -.")
    var stdin = false

    @Option(
        help: ArgumentHelp(
            "The destination, a folder below the endpoint's folder (default: the endpoint's folder).", valueName: "folder"))
    var to: String?

    @OptionGroup(title: "Session") var options: NewSessionOptions
    @OptionGroup(title: "Files") var items: UploadItemOptions
    @OptionGroup(title: "Upload") var upload: UploadOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions

    private var sessions: NewSessions {
        NewSessions(
            common: common, options: options, transfer: transfer, direction: .upload, upload: upload, uploadItems: items, account: account,
            paths: paths, readsPaths: stdin, destination: to)
    }

    func validate() throws { try sessions.validate() }

    func run() async throws { try await sessions.add() }
}
