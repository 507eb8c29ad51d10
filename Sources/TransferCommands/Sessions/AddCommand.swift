import ArgumentParser
import Foundation
import SystemPackage
import TransferCore
import TransferKit

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds a session that sends files and folders, and prints its ID.",
        discussion: """
            All paths are one session, sent in this order. A folder keeps its structure below its own name, and is read when the session \
            runs. Nothing is transferred before "run". Where something can't be read, all that is wrong is named and nothing is added.

            Example: transferq add studio reel.mov stills/ --to 2025/june --name 'Day one' --next
            Example: find . -name '*.wav' -print0 | transferq add studio -
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var placement: PlacementOptions
    @OptionGroup var transfer: TransferOptions
    @OptionGroup(visibility: .hidden) var later: LaterAddOptions

    @Argument(help: "The account to send to.", completion: Candidates.accounts)
    var account: String

    @Argument(help: "Files and folders, or - for paths from standard input, separated by NUL or by line breaks.")
    var paths: [PathArgument] = []

    @Flag(help: "Read paths from standard input too, as with -.")
    var stdin = false

    @Option(help: ArgumentHelp("A folder below the endpoint's.", valueName: "remote"))
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
        _ = try RemoteNaming(to: to.map(ProcessArguments.bytes))
    }

    func run() async throws {
        let paths = try await LocalPaths.read(paths.map(\.path) + (stdin ? [LocalPaths.standardInput] : []))
        let naming = try RemoteNaming(to: to.map(ProcessArguments.bytes))
        let items = try await BlockingWork.run { () throws(TransferError) in
            try paths.map { path throws(TransferError) in TransferItem(path, as: try naming.destination(of: path)) }
        }
        let options = try transfer.options()
        let batches = each ? items.map { [$0] } : [items]
        let requests = try batches.map { batch in
            var request = try SessionRequest.upload(items: batch, to: account, name: name, tags: tag, options: options)
            request.context = context.map { Data($0.utf8) }
            request.deduplicationKey = dedupe
            return request
        }
        let ids = try await common.withQueue { queue in
            var requests = requests
            try await placement.apply(to: &requests, in: queue)
            return try await placement.add(requests, to: queue)
        }
        await CommandContext.current.output.write(ids, asJSON: common.json)
    }
}
