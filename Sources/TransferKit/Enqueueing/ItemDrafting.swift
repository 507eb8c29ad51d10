package import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Creates drafts (``ItemDraft``) of items: checks their local files, chooses remote names, and collects all problems for one error. Blocks.
struct ItemDrafting {
    private static let maximumListedProblems = 20

    let sources: SourceFolders
    private var problems: [TransferError] = []
    /// The number of problems of earlier sessions.
    private var earlierProblemCount = 0
    /// Creates the drafts of a download; nil for an upload, and for a download whose folder is unusable.
    private var downloads: DownloadDrafting?
    private var direction = TransferDirection.upload
    /// The parent folder of the last file: as given, and with its links resolved and a slash at the end. Many files of a session are in one folder.
    private var resolvedParent: (given: [UInt8], path: [UInt8])?
    /// The contents to write to the ``Spool``, the folder with in-memory data and copies: one for each draft with data, in the order of the drafts.
    var spoolContents: [Spool.Content] = []

    /// Whether the links in the paths of items are resolved on this host; false if another host reads the items.
    let resolvesLinks: Bool

    init(_ sources: SourceFolders, resolvesLinks: Bool = true) {
        self.sources = sources
        self.resolvesLinks = resolvesLinks
    }

    /// Begins the drafts of a session. All drafts that are created until the next call belong to that session.
    ///
    /// - Parameter folder: The folder for the session's downloads; nil for an upload.
    /// - Returns: The folder's path in its stored form; nil for an upload.
    mutating func begin(downloadingTo folder: DownloadFolder?) -> Data? {
        downloads = nil
        earlierProblemCount = problems.count
        direction = folder == nil ? .upload : .download
        guard var folder else { return nil }
        if folder.path.isEmpty {
            problems.append(
                TransferError(.permanent, .unsupported, "The path of the download folder is empty. Use . for the queue's base folder."))
        }
        if !folder.path.isAbsolute { folder.path = sources.folderOfRelativePaths.pushing(folder.path) }
        do throws(TransferError) {
            downloads = try DownloadDrafting(into: folder)
        } catch {
            problems.append(error)
        }
        return Data(sources.stored(folder.path))
    }

    /// Creates a draft of an item. A draft with in-memory data or a copy has no file in the spool yet; `assignSpoolNames(_:)` sets the file's
    /// name later.
    ///
    /// - Returns: The draft; nil if the item or its download folder has a problem, which ``finish()`` throws.
    mutating func draft(of item: TransferItem) -> ItemDraft? {
        do throws(TransferError) {
            if let name = item.invalidDestination { _ = try RemotePath(name) }
            if item.destination?.isEndpointFolder == true, !item.isRemoteFolder {
                throw TransferError(
                    .permanent, .unsafeName,
                    "An item can't have the endpoint's folder as its remote name, unless the item is the download of a remote folder.")
            }
            try check(item.uploadCapability, "upload URL")
            try check(item.creationCapability, "creation URL")
            guard item.uploadCapability == nil || item.creationCapability == nil else {
                throw TransferError(
                    .permanent, .unsupported,
                    "\(item.shownName) has both an upload URL and a creation URL. Remove the creation URL, because the upload exists.")
            }
            if direction == .download, !item.isDownload {
                throw TransferError(.permanent, .unsupported, "\(item.shownName) is an upload item, but its session is a download.")
            }
            switch item.content {
            case .remote(let name):
                let path = try remotePath(of: item)
                return try downloads?.draft(of: path, as: name)
            case .remoteFolder(let name):
                let path = try remotePath(of: item)
                return try downloads?.draft(ofFolder: path, as: name, item.symbolicLinks)
            case .stream(let producer):
                if let length = producer.length, length < 0 {
                    throw TransferError(
                        .permanent, .unsupported, "The stream for \(item.shownName) has an invalid length: \(length) bytes.")
                }
                guard producer.length ?? 0 <= FileSize.maximum else { throw FileSize.tooLarge(FilePath(item.shownName)) }
                return ItemDraft(
                    kind: .stream, source: Spool.nameOfStream(), destination: Data(item.destination?.bytes ?? []),
                    size: producer.length ?? 0, uploadCapability: item.uploadCapability,
                    creationCapability: item.creationCapability, isUnsized: producer.length == nil)
            case .path(let path): return try draft(of: item, at: path)
            case .form(let parts): return try draft(of: item, with: parts)
            case .data(let data):
                spoolContents.append(.data(data))
                return ItemDraft(
                    kind: .blob, source: Data(), destination: Data(item.destination?.bytes ?? []), size: Int64(data.count),
                    uploadCapability: item.uploadCapability, creationCapability: item.creationCapability)
            }
        } catch {
            problems.append(error)
            return nil
        }
    }

    mutating func checkTotalSize(of items: [ItemDraft]) {
        var sum: Int64 = 0
        for item in items {
            sum.addSaturated(item.size)
            guard sum > FileSize.sessionMaximum else { continue }
            return problems.append(FileSize.exceedsSession(FilePath(bytes: [UInt8](item.source))))
        }
    }

    private func remotePath(of item: TransferItem) throws(TransferError) -> RemotePath {
        guard direction == .download, let remotePath = item.destination, item.uploadCapability == nil, item.creationCapability == nil
        else {
            throw TransferError(
                .permanent, .unsupported,
                "\(item.shownName) is a download item. Add it to a download, without an upload URL or a creation URL.")
        }
        return remotePath
    }

    private mutating func draft(of item: TransferItem, at given: FilePath) throws(TransferError) -> ItemDraft {
        guard !given.isEmpty else { throw TransferError(.sourceLost, .noSuchFile, "An item has an empty path.") }
        var path = absolute(given)
        let local = try LocalFile(at: path)
        let destination = if let given = item.destination { given.bytes } else { try Self.name(of: path) }
        path = try resolvingLinks(in: path, local, item.symbolicLinks)
        var draft = ItemDraft(
            source: Data(sources.stored(path)), destination: Data(destination), size: 0, uploadCapability: item.uploadCapability,
            creationCapability: item.creationCapability)
        switch local {
        case .file(let size):
            guard size <= FileSize.maximum else { throw FileSize.tooLarge(path) }
            draft.size = size
            // In a fleet, a link that the app named is followed, because another host resolves it.
            if item.symbolicLinks == .skip, resolvesLinks || !LocalFile.isLink(path) { draft.symbolicLinks = .skip }
            guard item.keepsCopy else { break }
            draft.kind = .blob
            spoolContents.append(.copy(of: path, size: size))
        case .folder:
            guard item.uploadCapability == nil else {
                throw TransferError(
                    .sourceLost, .unsafeName, "\(path) is a folder. Only a single file can have an upload URL.")
            }
            guard item.creationCapability == nil else {
                throw TransferError(
                    .sourceLost, .unsafeName,
                    "\(path) is a folder. Only a single file can have a creation URL. For a folder, set the session's creation URL.")
            }
            guard !item.keepsCopy else {
                throw TransferError(
                    .sourceLost, .unsafeName, "\(path) is a folder. Only a single file can be copied into the queue's storage folder.")
            }
            draft.kind = .folder
            draft.symbolicLinks = item.symbolicLinks
        }
        return draft
    }

    /// Resolves the links that an item's path contains now, unless the path may contain links when the file is sent or the folder is read.
    mutating func resolvingLinks(
        in path: FilePath, _ local: LocalFile, _ policy: SymbolicLinkPolicy
    ) throws(TransferError) -> FilePath {
        guard resolvesLinks else { return path }
        let isFile = if case .file = local { true } else { false }
        guard policy == .skip || policy == .followFiles && !isFile else { return path }
        do throws(Errno) {
            // Bytes, because the components of a `FilePath` would make this method several times slower.
            let (bytes, separator) = (path.bytes, UInt8(ascii: "/"))
            let end = bytes.lastIndex(of: separator) ?? 0
            let name = bytes.dropFirst(end + 1)
            let isSpecial = name.isEmpty || name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8)
            guard isFile, !isSpecial, !LocalFile.isLink(path) else { return try sources.resolvingLinks(path) }
            let given = bytes.prefix(max(1, end))
            if let resolvedParent, resolvedParent.given.elementsEqual(given) { return FilePath(bytes: resolvedParent.path + name) }
            var parent = try sources.resolvingLinks(FilePath(bytes: given)).bytes
            if parent.last != separator { parent.append(separator) }
            resolvedParent = (Array(given), parent)
            return FilePath(bytes: parent + name)
        } catch {
            throw LocalFile.unavailable(path, error)
        }
    }

    func absolute(_ path: FilePath) -> FilePath { path.isAbsolute ? path : sources.folderOfRelativePaths.pushing(path) }

    /// Checks the syntax of a URL. The error does not contain the URL, because the URL can grant access.
    private func check(_ url: Capability?, _ name: String) throws(TransferError) {
        guard let url else { return }
        guard !url.text.isEmpty, url.text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw TransferError(.permanent, .unsafeName, "An item's \(name) is empty, or contains a space or a control character.")
        }
    }

    /// Returns the last component of a path. If it is "." or "..", returns the name of the folder that the path refers to.
    ///
    /// - Throws: A ``TransferError`` if the path has no name, as for the root folder.
    static func name(of path: FilePath) throws(TransferError) -> [UInt8] {
        var component = path.lastComponent
        if component?.kind != .regular { component = resolve(path)?.lastComponent }
        guard let component else {
            throw TransferError(.sourceLost, .unsafeName, "\(path) has no name to use on the server. Give the item a remote name.")
        }
        return unsafe component.withPlatformString { unsafe [UInt8](UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }

    private static func resolve(_ path: FilePath) -> FilePath? {
        guard let resolved = unsafe path.withPlatformString({ unsafe realpath($0, nil) }) else { return nil }
        defer { unsafe free(resolved) }
        return unsafe FilePath(platformString: resolved)
    }

    /// Removes the problems of the current session if all of them concern local files. These problems do not matter if the queue already has a
    /// session with the same deduplication key.
    ///
    /// - Returns: An error with the removed problems; nil if no problem was removed.
    mutating func removeFileProblems() -> QueueError? {
        let own = problems[earlierProblemCount...]
        guard !own.isEmpty, !own.contains(where: Self.concernsRequest) else { return nil }
        let error = Self.error(Array(own))
        problems.removeSubrange(earlierProblemCount...)
        return error
    }

    /// Throws an error if any problem was collected.
    ///
    /// - Throws: ``QueueError`` that lists the first problems. Its code is `fileExists` if every problem is an existing file or folder;
    ///   `invalidRequest` if every problem is in the request itself; otherwise `unreadableItems`.
    func finish() throws(QueueError) {
        guard problems.isEmpty else { throw Self.error(problems) }
    }

    private static func error(_ problems: [TransferError]) -> QueueError {
        var text = problems.prefix(maximumListedProblems).map(\.message).joined(separator: "\n")
        if problems.count > maximumListedProblems { text += "\n… and \(problems.count - maximumListedProblems) more." }
        if problems.allSatisfy({ $0.code == .fileExists }) { return QueueError(.fileExists, text) }
        return QueueError(problems.allSatisfy(concernsRequest) ? .invalidRequest : .unreadableItems, text)
    }

    private static func concernsRequest(_ problem: TransferError) -> Bool {
        problem.failureClass == .permanent && [.unsafeName, .unsupported].contains(problem.code)
    }
}

extension QueueStore {
    /// Creates drafts of items for an existing upload session. Writes in-memory data, and copies of local files, to the spool. If the
    /// drafts are not stored, the caller must call ``discardBlobs(of:)``.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`, `unreadableItems` or `storageUnavailable`; `CancellationError` if the task is
    ///   cancelled during a copy. After an error, no new file remains in the spool.
    package func drafts(of items: [TransferItem]) async throws -> [ItemDraft] {
        try await drafts(of: items, downloadingTo: nil)
    }

    /// Creates drafts of items for an upload or download session; see ``drafts(of:)``. For a download, the code can also be `fileExists`.
    ///
    /// - Parameter folder: The session's download folder; nil for an upload session.
    func drafts(of items: [TransferItem], downloadingTo folder: DownloadFolder?) async throws -> [ItemDraft] {
        guard !items.isEmpty else { throw QueueError(.invalidRequest, "There are no items to add. Add at least one.") }
        return try await writingDrafts(in: folder?.path ?? items.localFolder) { [sources, spool] cancellation in
            var drafting = ItemDrafting(sources)
            _ = drafting.begin(downloadingTo: folder)
            var drafts = items.compactMap { drafting.draft(of: $0) }
            drafting.checkTotalSize(of: drafts)
            try drafting.finish()
            let names = try spool.write(drafting.spoolContents, cancellation)
            drafts.assignSpoolNames(names[...])
            return drafts
        }
    }
}

extension TransferItem {
    var shownName: String {
        source.map { $0.lastComponent?.string ?? $0.string } ?? shownFormName ?? destination.map {
            String(decoding: $0.lastComponent, as: UTF8.self)
        }
            ?? invalidDestination ?? ""
    }

    /// Whether the item was created as a remote file. On the server, it can still be a folder.
    var isFile: Bool {
        if case .remote = content { true } else { false }
    }

    fileprivate var isRemoteFolder: Bool {
        if case .remoteFolder = content { true } else { false }
    }

    var isDownload: Bool {
        switch content {
        case .remote, .remoteFolder: true
        case .path, .data, .stream, .form: false
        }
    }

    /// Whether the item refers to a file or folder, instead of containing data or a stream.
    var isReference: Bool {
        switch content {
        case .path, .remote, .remoteFolder: true
        case .data, .stream: false
        case .form: data == nil
        }
    }

    /// The item's in-memory data; for a form, the in-memory data of all its files, one after the other. Nil for an item without in-memory data.
    package var data: Data? {
        switch content {
        case .data(let data): data
        case .form(let parts): parts.contains { $0.data != nil } ? parts.reduce(into: Data()) { $0 += $1.data ?? Data() } : nil
        case .path, .stream, .remote, .remoteFolder: nil
        }
    }
}

extension [ItemDraft] {
    /// Assigns spool names to the items with data, in order.
    ///
    /// - Returns: The remaining names.
    @discardableResult
    mutating func assignSpoolNames(_ names: ArraySlice<Data>) -> ArraySlice<Data> {
        var names = names
        for index in indices where self[index].hasData {
            if let name = names.popFirst() { self[index].source = name }
        }
        return names
    }
}
