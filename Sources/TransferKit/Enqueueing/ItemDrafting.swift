import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Turns items into drafts: looks at what they name, settles the remote names, and notes all that is wrong. Blocks.
struct ItemDrafting {
    private static let namedProblems = 20

    private let sources: SourceFolders
    private let workingFolder: FilePath
    private var problems: [TransferError] = []
    /// Nil for an upload, and for a download whose folder can't be used.
    private var downloads: DownloadDrafting?
    private var direction = TransferDirection.upload

    init(_ sources: SourceFolders) {
        self.sources = sources
        workingFolder = Self.currentFolder()
    }

    /// The next drafts belong to a session that goes this way.
    ///
    /// - Parameter folder: Where downloads go; nil for an upload.
    /// - Returns: What is stored of the folder.
    mutating func begin(downloadingTo folder: DownloadFolder?) -> Data? {
        downloads = nil
        direction = folder == nil ? .upload : .download
        guard var folder else { return nil }
        if !folder.path.isAbsolute { folder.path = workingFolder.pushing(folder.path) }
        do throws(TransferError) {
            downloads = try DownloadDrafting(into: folder)
        } catch {
            problems.append(error)
        }
        return Data(sources.stored(folder.path))
    }

    /// Makes a draft; of a blob without its name in the spool. Nil if something is wrong.
    mutating func draft(of item: TransferItem) -> ItemDraft? {
        do throws(TransferError) {
            try check(item.uploadPlace)
            if direction == .download, !item.isReceived {
                throw TransferError(.permanent, .unsupported, "\(item.shownName) is to be sent, but its session downloads.")
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
                    throw TransferError(.permanent, .unsupported, "The stream for \(item.shownName) can't have \(length) bytes.")
                }
                guard producer.length ?? 0 <= FileSize.maximum else { throw FileSize.tooLarge(FilePath(item.shownName)) }
                return ItemDraft(
                    kind: .stream, source: Spool.nameOfStream(), destination: Data(item.destination?.bytes ?? []),
                    size: producer.length ?? 0, uploadPlace: item.uploadPlace, isUnsized: producer.length == nil)
            case .path(let path): return try draft(of: item, at: path)
            case .data(let data):
                return ItemDraft(
                    kind: .blob, source: Data(), destination: Data(item.destination?.bytes ?? []), size: Int64(data.count),
                    uploadPlace: item.uploadPlace)
            }
        } catch {
            problems.append(error)
            return nil
        }
    }

    /// Notes a problem if the items of one session come to more bytes than it takes.
    mutating func checkSum(of items: [ItemDraft]) {
        var sum: Int64 = 0
        for item in items {
            sum.addSaturated(item.size)
            guard sum > FileSize.sessionMaximum else { continue }
            return problems.append(FileSize.exceedsSession(FilePath(bytes: [UInt8](item.source))))
        }
    }

    private func remotePath(of item: TransferItem) throws(TransferError) -> RemotePath {
        guard direction == .download, let remotePath = item.destination, item.uploadPlace == nil else {
            throw TransferError(.permanent, .unsupported, "\(item.shownName) is to be downloaded, but its session uploads.")
        }
        return remotePath
    }

    private func draft(of item: TransferItem, at given: FilePath) throws(TransferError) -> ItemDraft {
        guard !given.isEmpty else { throw TransferError(.sourceLost, .noSuchFile, "An empty path names no file.") }
        let path = given.isAbsolute ? given : workingFolder.pushing(given)
        let local = try LocalFile(at: path)
        let destination = if let given = item.destination { given.bytes } else { try Self.name(of: path) }
        var draft = ItemDraft(source: Data(sources.stored(path)), destination: Data(destination), size: 0, uploadPlace: item.uploadPlace)
        switch local {
        case .file(let size):
            guard size <= FileSize.maximum else { throw FileSize.tooLarge(path) }
            draft.size = size
        case .folder:
            guard item.uploadPlace == nil else {
                throw TransferError(
                    .sourceLost, .unsafeName, "\(path) is a folder; only a single file can have a place at the server already.")
            }
            draft.kind = .folder
            draft.symbolicLinks = item.symbolicLinks
        }
        return draft
    }

    /// The place itself is in no message.
    private func check(_ uploadPlace: Capability?) throws(TransferError) {
        guard let uploadPlace else { return }
        guard !uploadPlace.text.isEmpty, uploadPlace.text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw TransferError(.permanent, .unsafeName, "An item's upload URL is empty, or holds a space or a control character.")
        }
    }

    /// A path's last component, or that of the folder that it means if that is "." or "..".
    private static func name(of path: FilePath) throws(TransferError) -> [UInt8] {
        var component = path.lastComponent
        if component?.kind != .regular { component = resolve(path)?.lastComponent }
        guard let component else {
            throw TransferError(.sourceLost, .unsafeName, "\(path) has no name of its own; give the item a remote name.")
        }
        return unsafe component.withPlatformString { unsafe [UInt8](UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }

    private static func resolve(_ path: FilePath) -> FilePath? {
        guard let resolved = unsafe path.withPlatformString({ unsafe realpath($0, nil) }) else { return nil }
        defer { unsafe free(resolved) }
        return unsafe FilePath(platformString: resolved)
    }

    /// Not Foundation's, which can't tell names that are not UTF-8.
    private static func currentFolder() -> FilePath {
        guard let path = unsafe getcwd(nil, 0) else { return "/" }
        defer { unsafe free(path) }
        return unsafe FilePath(platformString: path)
    }

    /// - Throws: ``QueueError``, naming what is wrong, if something is: with the code `fileExists` if that is all, `invalidRequest` if no look at
    ///   the disk was needed to see it, or else `unreadableItems`.
    func finish() throws(QueueError) {
        guard !problems.isEmpty else { return }
        var text = problems.prefix(Self.namedProblems).map(\.message).joined(separator: "\n")
        if problems.count > Self.namedProblems { text += "\n… and \(problems.count - Self.namedProblems) more." }
        if problems.allSatisfy({ $0.code == .fileExists }) { throw QueueError(.fileExists, text) }
        let isSeenAtOnce = problems.allSatisfy { $0.failureClass == .permanent && [.unsafeName, .unsupported].contains($0.code) }
        throw QueueError(isSeenAtOnce ? .invalidRequest : .unreadableItems, text)
    }
}

extension QueueStore {
    /// Turns items into drafts, for a session that exists. What was handed over in memory is on disk when this returns; if the drafts are not
    /// stored after all, it is for the caller to call ``discardBlobs(of:)``.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`, `unreadableItems` or `storageUnavailable`; nothing is left on disk then.
    package func drafts(of items: [TransferItem]) async throws(QueueError) -> [ItemDraft] {
        try await drafts(of: items, downloadingTo: nil)
    }

    /// As ``drafts(of:)``, for a session that downloads to a folder.
    func drafts(of items: [TransferItem], downloadingTo folder: DownloadFolder?) async throws(QueueError) -> [ItemDraft] {
        guard !items.isEmpty else { throw QueueError(.invalidRequest, "There are no items to add; give at least one.") }
        return try await BlockingIO.run { [sources, spool] () throws(QueueError) in
            var drafting = ItemDrafting(sources)
            _ = drafting.begin(downloadingTo: folder)
            var drafts = items.compactMap { drafting.draft(of: $0) }
            drafting.checkSum(of: drafts)
            try drafting.finish()
            let names = try spool.write(items.compactMap(\.data))
            drafts.nameBlobs(names[...])
            return drafts
        }
    }
}

extension TransferItem {
    /// For messages.
    var shownName: String {
        source.map { $0.lastComponent?.string ?? $0.string } ?? destination.map { String(decoding: $0.lastComponent, as: UTF8.self) } ?? ""
    }

    /// Whether it is one remote file.
    var isFile: Bool {
        if case .remote = content { true } else { false }
    }

    /// Whether it comes from the other end.
    var isReceived: Bool {
        switch content {
        case .remote, .remoteFolder: true
        case .path, .data, .stream: false
        }
    }

    var data: Data? {
        if case .data(let data) = content { data } else { nil }
    }
}

extension [ItemDraft] {
    /// Gives the blobs their names in the spool, in order; returns those that are left.
    @discardableResult
    mutating func nameBlobs(_ names: ArraySlice<Data>) -> ArraySlice<Data> {
        var names = names
        for index in indices where self[index].kind == .blob {
            if let name = names.popFirst() { self[index].source = name }
        }
        return names
    }
}
