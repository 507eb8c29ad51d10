import ArgumentParser
import Foundation
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransportHTTP

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds a session that sends files and folders, or receives files, and prints its ID.",
        discussion: """
            All paths are one session, moved in this order. A folder that is sent keeps its structure below its own name, and is read when \
            the session runs. Nothing is transferred before "run". Where something can't be read, all that is wrong is named and nothing \
            is added.

            Example: transferq add studio reel.mov stills/ --to 2025/june --name 'Day one' --next
            Example: transferq add studio reels/day1.mov --download --to ~/Movies
            Example: find . -name '*.wav' -print0 | transferq add studio -
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var placement: PlacementOptions
    @OptionGroup var direction: DirectionOptions
    @OptionGroup var transfer: TransferOptions

    @Argument(help: "The account to send to, or to receive from.", completion: Candidates.accounts)
    var account: String

    @Argument(
        help: "Files and folders, with --download remote files, or - for paths from standard input, separated by NUL or by line breaks.")
    var paths: [PathArgument] = []

    @Flag(help: "Read paths from standard input too, as with -.")
    var stdin = false

    @Option(help: ArgumentHelp("A folder below the endpoint's; with --download a local one.", valueName: "folder"))
    var to: String?

    @Option(help: ArgumentHelp("A name for the session.", valueName: "text"))
    var name: String?

    @Option(help: ArgumentHelp("A word to find the session by; can be repeated.", valueName: "word"))
    var tag: [String] = []

    @Option(help: ArgumentHelp("A JSON value of your own, kept with the session.", valueName: "json"))
    var context: String?

    @Option(
        help: ArgumentHelp(
            "While a session with the same key is not completed, add nothing and print the ID of that one.", valueName: "key"))
    var dedupe: String?

    @Flag(help: "One session for each path.")
    var each = false

    func validate() throws {
        if paths.isEmpty, !stdin { throw ValidationError("No paths are given; name files or folders, or give - or --stdin.") }
        let texts = [("--name", name), ("--context", context), ("--dedupe", dedupe)].compactMap { option, text in text.map { (option, $0) }
        }
        for (option, text) in texts + tag.map({ ("--tag", $0) }) where !ProcessArguments.isText(text) {
            throw ValidationError("The value of \(option) is not UTF-8.")
        }
        if let context, !JSONValue.isJSON(Data(context.utf8)) {
            throw ValidationError("The value of --context is not JSON; a text needs quotes of its own: '\"text\"'.")
        }
        if each, dedupe != nil { throw ValidationError("--each and --dedupe exclude each other: all but the first would be duplicates.") }
        if !direction.download { _ = try RemoteNaming(to: to.map(ProcessArguments.bytes)) }
    }

    func run() async throws {
        let paths = try await LocalPaths.read(paths.map(\.path) + (stdin ? [LocalPaths.standardInput] : []))
        let items = direction.download ? try remoteItems(paths) : try await localItems(paths)
        var options = try transfer.options()
        options.overwrite = direction.overwrite ?? options.overwrite
        let batches = each ? items.map { [$0] } : [items]
        let requests = try batches.map { batch in
            var request =
                direction.download
                ? try SessionRequest.download(items: batch, from: account, to: folder, name: name, tags: tag, options: options)
                : try SessionRequest.upload(items: batch, to: account, name: name, tags: tag, options: options)
            request.context = context.map { Data($0.utf8) }
            request.deduplicationKey = dedupe
            return request
        }
        let ids = try await common.withQueue { queue in
            if direction.overwrite != nil, !direction.download { try await checkThatFilesCanBeSpared(in: queue) }
            var requests = requests
            try await placement.apply(to: &requests, in: queue)
            return try await placement.add(requests, to: queue)
        }
        await CommandContext.current.output.write(ids, asJSON: common.json)
    }

    /// - Throws: If the account has an endpoint that can't be asked not to replace a file.
    private func checkThatFilesCanBeSpared(in queue: any ControllableQueue) async throws {
        guard direction.overwrite != .always, let endpoints = try await queue.account(account)?.account.endpoints,
            let endpoint = endpoints.first(where: { $0.transport == .http })
        else { return }
        throw CommandFailure(
            .usage,
            "--overwrite is for downloads and SFTP uploads: \(endpoint.location) decides itself what happens to a file that is there already."
        )
    }

    /// Where downloads go.
    private var folder: FilePath { FilePath(bytes: to.map(ProcessArguments.bytes) ?? []).absolute }

    private func remoteItems(_ paths: [FilePath]) throws -> [TransferItem] {
        try paths.map { .remote(try RemotePath(bytes: $0.bytes)) }
    }

    private func localItems(_ paths: [FilePath]) async throws -> [TransferItem] {
        let naming = try RemoteNaming(to: to.map(ProcessArguments.bytes))
        return try await BlockingWork.run { () throws(TransferError) in
            try paths.map { path throws(TransferError) in TransferItem(path, as: try naming.destination(of: path)) }
        }
    }
}
