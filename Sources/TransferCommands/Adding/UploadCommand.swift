import ArgumentParser
import TransferCore

struct UploadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload", abstract: "Adds a session that uploads files and folders.",
        discussion: """
            Prints the ID of the session. All paths form one session and are transferred in the given order, by "transferq run" or the agent. \
            The article "Options of transfers" \
            explains the options.

            Example: transferq upload studio reel.mov stills/ --to 2025/june --name 'Day one' --next
            Example: transferq upload site --form title='Day one' --form reel=@day1.mov
            Example: find . -name '*.wav' -print0 | transferq upload studio -
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "The account to upload to.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String

    @Argument(help: "Files and folders; - reads paths from standard input.")
    var paths: [PathArgument] = []

    @Flag(help: "Also read paths from standard input, like -.")
    var stdin = false

    @Option(
        help: ArgumentHelp("The remote folder (default: the endpoint's folder).", valueName: "folder"))
    var to: String?

    @OptionGroup(title: "Session") var options: NewSessionOptions
    @OptionGroup(title: "Files") var items: UploadItemOptions
    @OptionGroup(title: "Upload") var upload: UploadOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions

    private var sessions: SessionSubmission {
        SessionSubmission(
            common: common, options: options, transfer: transfer, direction: .upload, upload: upload, uploadItems: items, account: account,
            paths: paths, hasStdinFlag: stdin, destination: to)
    }

    func validate() throws { try sessions.validate() }

    func run() async throws { try await sessions.add() }
}
