import ArgumentParser
import TransferCore

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds an upload session; with --download, a download.",
        discussion: """
            For the options, see the help of the commands upload and download.

            Example: transferq add studio reel.mov
            Example: transferq add studio reels/day1.mov --download --to ~/Movies
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Download the given remote paths instead of uploading.")
    var download = false

    @Argument(help: "The account.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String

    @Argument(
        help: "Files and folders; - reads paths from standard input.")
    var paths: [PathArgument] = []

    @Flag(help: "Also read paths from standard input, like -.")
    var stdin = false

    @Option(
        help: ArgumentHelp(
            "The remote folder; with --download, the local folder.",
            valueName: "folder"))
    var to: String?

    @OptionGroup(title: "Session") var options: NewSessionOptions
    @OptionGroup(title: "Files") var uploadItems: UploadItemOptions
    @OptionGroup(title: "Upload") var uploadOptions: UploadOptions
    @OptionGroup(title: "Download") var downloadOptions: DownloadOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions

    private var sessions: SessionSubmission {
        SessionSubmission(
            common: common, options: options, transfer: transfer, direction: download ? .download : .upload, upload: uploadOptions,
            uploadItems: uploadItems, download: downloadOptions, account: account, paths: paths, hasStdinFlag: stdin, destination: to)
    }

    func validate() throws { try sessions.validate() }

    func run() async throws { try await sessions.add() }
}
