import ArgumentParser
import Foundation
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransportHTTP

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds a session that uploads or downloads files and folders, and prints its ID.",
        discussion: """
            All paths form one session and are transferred in the given order. An uploaded folder arrives under its own name, with its \
            subfolders. It is read when the session runs. "transferq run" or the agent starts the transfer. If a path can't be read, the command \
            adds nothing.

            Without --overwrite, downloads and SFTP uploads never replace existing files. A plain HTTP server decides whether an upload replaces a \
            file, so for uploads, accounts with such an endpoint reject every --overwrite policy except "always". A tus server stores each file as \
            a new upload. For uploads, accounts with only tus endpoints reject "different", "newer" and "skip", and "always" has no effect.

            Example: transferq add studio reel.mov stills/ --to 2025/june --name 'Day one' --next
            Example: transferq add studio reels/day1.mov --download --to ~/Movies
            Example: transferq add site --form title='Day one' --form reel=@day1.mov --form 'papers=@a.pdf;type=application/pdf'
            Example: find . -name '*.wav' -print0 | transferq add studio -
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var placement: PlacementOptions
    @OptionGroup var direction: DirectionOptions
    @OptionGroup var transfer: TransferOptions

    @Argument(help: "The account to upload to or download from.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String

    @Argument(
        help: "Files and folders (remote ones with --download), or - for paths from standard input, separated by NUL or line breaks.")
    var paths: [PathArgument] = []

    @Option(
        help: ArgumentHelp(
            "A part of a form that is sent in one request, instead of paths: NAME=TEXT for a text field, or NAME=@FILE for a file; repeatable, in the given order. After FILE, ;name=NAME and ;type=TYPE set the file's name and media type for the server.",
            valueName: "name=value"))
    var form: [FormArgument] = []

    @Flag(help: "Also read paths from standard input, like -.")
    var stdin = false

    @Option(
        help: ArgumentHelp(
            "The destination folder. For uploads, a folder below the endpoint's folder (default: the endpoint's folder); with --download, a local folder (default: the working directory).",
            valueName: "folder"))
    var to: String?

    @Option(
        help: ArgumentHelp("The name of the session (default: derived from its first path).", valueName: "text"),
        transform: TextArgument.text)
    var name: String?

    @Option(help: ArgumentHelp("A tag for selecting the session; repeatable.", valueName: "word"), transform: TextArgument.text)
    var tag: [String] = []

    @Option(
        parsing: .unconditional, help: ArgumentHelp("A JSON value to store with the session.", valueName: "json"),
        transform: TextArgument.text)
    var context: String?

    @Option(
        help: ArgumentHelp(
            "If a session that is not completed has the same key, add nothing and print that session's ID.", valueName: "key"),
        transform: TextArgument.text)
    var dedupe: String?

    @Flag(help: "With --dedupe, also add nothing if a completed session with the same key is still in the queue.")
    var dedupeCompleted = false

    @Flag(help: "Copy the files into the storage folder first, so that they can then be changed or deleted.")
    var copy = false

    @Flag(help: "Save the session as a draft, outside of the queue, until \"transferq enqueue\".")
    var draft = false

    @Flag(help: "Add one session for each path.")
    var each = false

    func validate() throws {
        if !form.isEmpty {
            guard paths.isEmpty, !stdin else {
                throw ValidationError("--form and paths can't be used together. Add each file as --form NAME=@FILE.")
            }
            guard !direction.download, !each, !copy else {
                throw ValidationError("--form can't be used with --download, --each or --copy.")
            }
            guard form.contains(where: { $0.path != nil }) else {
                throw ValidationError("A form needs at least one file. Add it as --form NAME=@FILE.")
            }
        } else if paths.isEmpty, !stdin {
            throw ValidationError("No paths are given. Name files or folders, or use - or --stdin.")
        }
        if let name, name.isEmpty { throw ValidationError("--name is empty. Omit it to use the name of the first path.") }
        if transfer.readsStandardInput, stdin || paths.contains(where: { $0.path == LocalPaths.standardInput }) {
            throw ValidationError("Standard input can be read only once. Pass the paths or the settings in another way.")
        }
        if let context, !JSONValue.isJSON(Data(context.utf8)) {
            throw ValidationError(
                "The value of --context is not JSON, or has a number out of range. A JSON string needs double quotes: '\"text\"'.")
        }
        if copy, direction.download { throw ValidationError("--copy is for uploads. Omit it with --download.") }
        if dedupe == "" {
            throw ValidationError("--dedupe is empty. Give it a key, or omit the option.")
        }
        if dedupeCompleted, dedupe == nil { throw ValidationError("--dedupe-completed needs --dedupe with a key.") }
        if draft, placement.position.isGiven {
            throw ValidationError("A draft has no position. Omit --at, --next, --now and --hold, or give them to \"transferq enqueue\".")
        }
        if draft, dedupeCompleted { throw ValidationError("--draft and --dedupe-completed can't be used together.") }
        if tag.contains("") { throw ValidationError("--tag is empty. Give it a word, or omit the option.") }
        if each, dedupe != nil {
            throw ValidationError("--each and --dedupe can't be used together, because all sessions would have the same key.")
        }
        if !direction.download { _ = try RemoteNaming(to: to.map(ProcessArguments.bytes)) }
    }

    func run() async throws {
        let given = try await LocalPaths.read(paths + (stdin ? [PathArgument(bytes: LocalPaths.standardInput.bytes)] : []))
        let items =
            direction.download
            ? try remoteItems(given.map(\.path)) : form.isEmpty ? try await localItems(given.map(\.path)) : [try await formItem()]
        let requests = try requests(for: each ? items.map { [$0] } : [items], try await transfer.options())
        let hasParallelOption = transfer.parallel != nil
        let (clash, isSingleFile) = await BlockingIO.run {
            (
                RemoteNameClash(in: items),
                hasParallelOption && requests.allSatisfy { $0.items.count == 1 && $0.items.first?.source?.isFolder == false }
            )
        }
        var warnings: [String] = []
        var hasOwner = false
        let ids = try await common.withQueue { queue in
            hasOwner = !(queue is TransferQueue)
            warnings = try await checked(requests, given, clash, ofSingleFile: isSingleFile, in: queue)
            var requests = requests
            try await placement.apply(to: &requests, in: queue)
            return try await placement.add(requests, to: queue, asDrafts: draft)
        }
        for warning in warnings { await CommandContext.current.terminal.write(warning.withoutControlCharacters) }
        await CommandContext.current.output.write(ids, asJSON: common.json)
        if draft {
            await common.note("A draft does not run. To add it to the queue: transferq enqueue ID")
        } else if !hasOwner {
            await common.note("No process runs this queue. To run it: transferq run, or transferq agent start")
        }
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
            request.deduplicatesCompleted = dedupeCompleted
            return request
        }
    }

    /// The session's name if the first path ends with `.` or `..`: the name of the folder at that path, and the number of further items.
    /// Nil for other paths, for which the queue chooses the name.
    private static func name(of items: [TransferItem]) -> String? {
        guard let first = items.first, let kind = first.source?.lastComponent?.kind, kind != .regular, let destination = first.destination
        else { return nil }
        let name = String(decoding: destination.lastComponent, as: UTF8.self)
        return items.count == 1 ? name : "\(name) and \(items.count - 1) more"
    }

    /// Checks the requests against the account's endpoints.
    ///
    /// - Returns: Warnings for the user.
    /// - Throws: A `CommandFailure` if the endpoints can't perform the sessions.
    private func checked(
        _ requests: [SessionRequest], _ given: [PathArgument], _ clash: RemoteNameClash?, ofSingleFile isSingleFile: Bool,
        in queue: any ControllableQueue
    ) async throws -> [String] {
        guard let endpoints = try await queue.account(account)?.account.endpoints, let options = requests.first?.options else { return [] }
        let check = AdmissionCheck(endpoints: endpoints, options: options, transports: CommandContext.current.transports)
        // With `--dedupe`, the session may already exist. The command then leaves errors in the sessions' options and remote names to the
        // queue.
        if dedupe == nil { try check.check(for: direction.download ? .download : .upload) }
        if dedupe == nil, !form.isEmpty { try check.checkForms() }
        guard !direction.download else {
            if let folder = given.first(where: \.endsInSlash) { try check.check(folder: folder.path) }
            return []
        }
        let warnings = try clash.map { clash in dedupe == nil ? [try check.check(clash)] : (try? check.check(clash)).map { [$0] } ?? [] }
        return try (direction.overwrite.map { try check.check($0) } ?? []) + (warnings ?? [])
            + check.warnings(chunk: transfer.chunk != nil, parallel: transfer.parallel != nil, ofSingleFile: isSingleFile)
    }

    /// The local destination of downloads.
    private var folder: FilePath { FilePath(bytes: to.map(ProcessArguments.bytes) ?? []).absolute }

    private func remoteItems(_ paths: [FilePath]) throws -> [TransferItem] {
        try paths.map { .remote(try RemotePath(bytes: $0.bytes)) }
    }

    private func formItem() async throws -> TransferItem {
        let (naming, first) = (try RemoteNaming(to: to.map(ProcessArguments.bytes)), form.compactMap(\.path).first)
        let name = try await BlockingIO.run { () throws(TransferError) in
            try to == nil ? nil : first.flatMap { path throws(TransferError) in try naming.destination(of: path) }
        }
        return .form(form.map(\.part), as: name)
    }

    private func localItems(_ paths: [FilePath]) async throws -> [TransferItem] {
        let naming = try RemoteNaming(to: to.map(ProcessArguments.bytes))
        let links = direction.symlinks ?? .skip
        return try await BlockingIO.run { [copy] () throws(TransferError) in
            try paths.map { path throws(TransferError) in
                // Arguments refer to this process's working directory, even if the queue has a base folder.
                var item = TransferItem(path.absolute, as: try naming.destination(of: path), symbolicLinks: links)
                item.keepsCopy = copy
                return item
            }
        }
    }
}
