import ArgumentParser
import Foundation
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransportHTTP

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds a session that sends files and folders, or receives them, and prints its ID.",
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

    @Argument(help: "The account to send to, or to receive from.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String

    @Argument(
        help: "Files and folders, with --download remote ones, or - for paths from standard input, separated by NUL or by line breaks.")
    var paths: [PathArgument] = []

    @Flag(help: "Read paths from standard input too, as with -.")
    var stdin = false

    @Option(help: ArgumentHelp("A folder below the endpoint's; with --download a local one.", valueName: "folder"))
    var to: String?

    @Option(help: ArgumentHelp("A name for the session.", valueName: "text"), transform: TextArgument.text)
    var name: String?

    @Option(help: ArgumentHelp("A word to find the session by; can be repeated.", valueName: "word"), transform: TextArgument.text)
    var tag: [String] = []

    @Option(
        parsing: .unconditional, help: ArgumentHelp("A JSON value of your own, kept with the session.", valueName: "json"),
        transform: TextArgument.text)
    var context: String?

    @Option(
        help: ArgumentHelp(
            "While a session with the same key is not completed, add nothing and print the ID of that one.", valueName: "key"),
        transform: TextArgument.text)
    var dedupe: String?

    @Flag(help: "One session for each path.")
    var each = false

    func validate() throws {
        if paths.isEmpty, !stdin { throw ValidationError("No paths are given; name files or folders, or give - or --stdin.") }
        if transfer.readsStandardInput, stdin || paths.contains(where: { $0.path == LocalPaths.standardInput }) {
            throw ValidationError("Standard input can be read once only; give the paths or the settings in another way.")
        }
        if let context, !JSONValue.isJSON(Data(context.utf8)) {
            throw ValidationError(
                "The value of --context is not JSON, or has a number out of the range of a Double; a text needs own quotes: '\"text\"'.")
        }
        if dedupe == "" {
            throw ValidationError("The key of --dedupe is empty, and all that have none would be one; give one or leave it out.")
        }
        if tag.contains("") { throw ValidationError("A tag of --tag is empty; give a word or leave it out.") }
        if each, dedupe != nil { throw ValidationError("--each and --dedupe exclude each other: all but the first would be duplicates.") }
        if !direction.download { _ = try RemoteNaming(to: to.map(ProcessArguments.bytes)) }
    }

    func run() async throws {
        let given = try await LocalPaths.read(paths + (stdin ? [PathArgument(bytes: LocalPaths.standardInput.bytes)] : []))
        let items = direction.download ? try remoteItems(given.map(\.path)) : try await localItems(given.map(\.path))
        let requests = try requests(for: each ? items.map { [$0] } : [items], try await transfer.options())
        let asksForParts = transfer.parallel != nil
        let (clash, isSingleFile) = await BlockingWork.run {
            (
                RemoteNameClash(in: items),
                asksForParts && requests.allSatisfy { $0.items.count == 1 && $0.items.first?.source?.isFolder == false }
            )
        }
        var warnings: [String] = []
        let ids = try await common.withQueue { queue in
            warnings = try await checked(requests, given, clash, ofSingleFile: isSingleFile, in: queue)
            var requests = requests
            try await placement.apply(to: &requests, in: queue)
            return try await placement.add(requests, to: queue)
        }
        for warning in warnings { await CommandContext.current.terminal.write(warning.withoutControlCharacters) }
        await CommandContext.current.output.write(ids, asJSON: common.json)
    }

    private func requests(for batches: [[TransferItem]], _ options: SessionOptions) throws -> [SessionRequest] {
        var options = options
        options.overwrite = direction.overwrite ?? options.overwrite
        return try batches.map { batch in
            let name = name ?? Self.name(of: batch)
            var request =
                direction.download
                ? try SessionRequest.download(items: batch, from: account, to: folder, name: name, tags: tag, options: options)
                : try SessionRequest.upload(items: batch, to: account, name: name, tags: tag, options: options)
            request.context = context.map { Data($0.utf8) }
            request.deduplicationKey = dedupe
            return request
        }
    }

    /// A name for a session whose first path ends in `.` or `..`: that of the folder it means. Nil for all others, which the queue names.
    private static func name(of items: [TransferItem]) -> String? {
        guard let first = items.first, let kind = first.source?.lastComponent?.kind, kind != .regular, let destination = first.destination
        else { return nil }
        let name = String(decoding: destination.lastComponent, as: UTF8.self)
        return items.count == 1 ? name : "\(name) and \(items.count - 1) more"
    }

    /// - Returns: What a person is to know.
    /// - Throws: If the account's endpoints can't do what is asked for.
    private func checked(
        _ requests: [SessionRequest], _ given: [PathArgument], _ clash: RemoteNameClash?, ofSingleFile isSingleFile: Bool,
        in queue: any ControllableQueue
    ) async throws -> [String] {
        guard let endpoints = try await queue.account(account)?.account.endpoints, let options = requests.first?.options else { return [] }
        let fit = EndpointFit(endpoints: endpoints, options: options, transports: CommandContext.current.transports)
        // The queue checks the same, and knows whether the session is there already.
        if dedupe == nil { try fit.check(for: direction.download ? .download : .upload) }
        guard !direction.download else {
            if let folder = given.first(where: \.endsInSlash) { try fit.check(folder: folder.path) }
            return []
        }
        return try (direction.overwrite.map { try fit.check($0) } ?? []) + (clash.map { [try fit.check($0)] } ?? [])
            + fit.warnings(chunk: transfer.chunk != nil, parallel: transfer.parallel != nil, ofSingleFile: isSingleFile)
    }

    /// Where downloads go.
    private var folder: FilePath { FilePath(bytes: to.map(ProcessArguments.bytes) ?? []).absolute }

    private func remoteItems(_ paths: [FilePath]) throws -> [TransferItem] {
        try paths.map { .remote(try RemotePath(bytes: $0.bytes)) }
    }

    private func localItems(_ paths: [FilePath]) async throws -> [TransferItem] {
        let naming = try RemoteNaming(to: to.map(ProcessArguments.bytes))
        let links = direction.symlinks ?? .skip
        return try await BlockingWork.run { () throws(TransferError) in
            try paths.map { path throws(TransferError) in
                TransferItem(path, as: try naming.destination(of: path), symbolicLinks: links)
            }
        }
    }
}
