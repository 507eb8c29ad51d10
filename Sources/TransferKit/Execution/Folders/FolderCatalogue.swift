import Foundation
import SystemPackage
import TransferCore

/// Turns a transport's listing of one remote folder into rows of the session's manifest, the stored list of the session's files
/// (``FolderExpansion``). Keeps at most 16,384 entries in memory.
///
/// Validates the server's listing: an entry whose name is not a single path component becomes a failed file. Ignores repeated names. The
/// listing fails if it repeats too many names, or if the session would have too many files and folders.
actor FolderCatalogue {
    /// Receives rows. The receiver must make the rows durable before it returns, unless they are the folder's last rows.
    typealias Receiver = @Sendable (ManifestBatch, _ areLast: Bool) async throws -> Void

    /// The state that one catalogue passes to the next: the numbers for new rows, and the remaining total size.
    struct Cursor: Sendable {
        /// The number of the next file row.
        var position: Int64
        /// The number of the next folder row.
        var directory: Int64
        /// The number of bytes by which the total size of the session may still grow. A larger file counts as a file of unknown size: a server may
        /// list invented sizes, and the total must not overflow.
        var bytes: Int64
    }

    private static let maximumEntriesInMemory = 16_384
    private static let batchSize = 1_000
    /// The maximum number of repeated names, including the names in `dotNames`. A rename during the listing may repeat a name. The limit stops a
    /// server that repeats names forever.
    private static let maximumRepeats = 1_000
    /// The names that some servers list for the folder itself and its parent.
    private static let dotNames: [[UInt8]] = [[UInt8(ascii: ".")], [UInt8(ascii: "."), UInt8(ascii: ".")]]
    /// The maximum length of a remote path in bytes: PATH_MAX (limits.h).
    private static let longestPath = 4_096

    private let folder: RemoteFolder
    private let key: SessionKey
    private let store: QueueStore
    /// The maximum number of files and folders in a session with remote folders.
    private let maximumNames: Int64
    private let receiver: Receiver
    private var entries: [RemoteEntry] = []
    private var repeats = 0
    private var failure: (any Error)?
    private(set) var cursor: Cursor
    private(set) var totals = ManifestTotals()
    /// Whether the receiver may have received rows.
    private(set) var hasRows = false

    init(
        of folder: RemoteFolder, _ key: SessionKey, in store: QueueStore, at cursor: Cursor, maximumNames: Int64,
        receiver: @escaping Receiver
    ) {
        self.folder = folder
        self.key = key
        self.store = store
        self.cursor = cursor
        self.maximumNames = maximumNames
        self.receiver = receiver
    }

    /// Receives listed entries from the transport.
    ///
    /// - Throws: ``TransferError`` if the listing is invalid; `CancellationError`; ``QueueError`` if the database can't be used. After an error,
    ///   all later calls throw the same error.
    func receive(_ listed: [RemoteEntry]) async throws {
        try throwIfFailed()
        for entry in listed {
            if Self.dotNames.contains(entry.name) {
                try countRepeat(of: entry)
                continue
            }
            entries.append(entry)
            if entries.count >= Self.maximumEntriesInMemory { try await store(isLast: false) }
        }
    }

    func throwIfFailed() throws {
        if let failure { throw failure }
    }

    /// Ends the listing: passes the last rows to the receiver.
    func finish() async throws {
        try await store(isLast: true)
    }

    /// The error with which this catalogue ended the listing, or nil.
    var ownFailure: (any Error)? { failure }

    private func store(isLast: Bool) async throws {
        do {
            try throwIfFailed()
            try Task.checkCancellation()
            var received = entries
            entries = []
            received.sort { $0.name.lexicographicallyPrecedes($1.name) }
            let known = hasRows ? try await store.knownNames(in: folder.number, of: key, among: received.map { Data($0.name) }) : []
            var batch = ManifestBatch()
            if !hasRows {
                batch.directories.append(contentsOf: ownRow)
                hasRows = isLast || !received.isEmpty
            }
            var last: [UInt8]?
            for entry in received {
                guard entry.name != last, !known.contains(entry.name) else {
                    try countRepeat(of: entry)
                    continue
                }
                last = entry.name
                try add(entry, to: &batch)
                guard batch.count >= Self.batchSize else { continue }
                try await receiver(batch, false)
                batch = ManifestBatch()
            }
            if batch.count > 0 { try await receiver(batch, isLast) }
        } catch {
            if failure == nil { failure = error }
            throw error
        }
    }

    /// The row of the folder itself, if the manifest does not contain it yet. Only the item's top folder can lack a row, because the row of
    /// a subfolder is added with the rows of its parent.
    private var ownRow: [ManifestDirectory] {
        guard folder.number == cursor.directory else { return [] }
        cursor.directory += 1
        return [ManifestDirectory(number: folder.number, parent: folder.parent, source: folder.source, destination: folder.destination)]
    }

    /// Counts a name that was listed before, or that is one of `dotNames`. Throws if there are too many of these names.
    private func countRepeat(of entry: RemoteEntry) throws {
        repeats += 1
        guard repeats > Self.maximumRepeats else { return }
        let error = TransferError(
            .permanent, .invalidResponse,
            "The server keeps listing the same names in \(shownFolder), such as \"\(Self.shown(entry.name))\". The folder is not downloaded."
        )
        failure = error
        throw error
    }

    private func add(_ entry: RemoteEntry, to batch: inout ManifestBatch) throws {
        guard cursor.position + cursor.directory < maximumNames else {
            throw TransferError(
                .permanent, .tooLarge,
                "With \(shownFolder), the session exceeds its limit of \(maximumNames) files and folders. "
                    + "Download the subfolders in separate sessions."
            )
        }
        if let problem = problem(with: entry.name) {
            let error = TransferError(
                .permanent, .unsafeName,
                "The server lists a name in \(shownFolder) that \(problem): \"\(Self.shown(entry.name))\". This entry is not downloaded.")
            return append(Self.replacement(for: entry.name), state: .failed, error: error, isStandIn: true, &batch)
        }
        switch entry.kind {
        case .file(let size):
            let size = size.flatMap { (0...min(cursor.bytes, FileSize.maximum)).contains($0) ? $0 : nil }
            cursor.bytes -= size ?? 0
            append(entry.name, size: size, &batch)
        case .folder:
            batch.directories.append(
                ManifestDirectory(number: cursor.directory, parent: folder.number, source: Data(entry.name), destination: Data()))
            cursor.directory += 1
        case .symbolicLink: skip(entry.name, "a symbolic link", &batch)
        case .other: skip(entry.name, "neither a file nor a folder", &batch)
        }
    }

    private func skip(_ name: [UInt8], _ what: String, _ batch: inout ManifestBatch) {
        let path = folder.remotePath.isEmpty ? Self.shown(name) : "\(shownFolder)/\(Self.shown(name))"
        let message = "\(path) is \(what) on the server and is not downloaded."
        append(name, state: .skipped, error: TransferError(.unsupported, .notARegularFile, message), &batch)
    }

    private func append(
        _ name: [UInt8], size: Int64? = 0, state: ItemState = .pending, error: TransferError? = nil, isStandIn: Bool = false,
        _ batch: inout ManifestBatch
    ) {
        batch.entries.append(
            ManifestEntry(
                position: cursor.position, directory: folder.number, kind: .download, source: Data(name), destination: Data(),
                size: size ?? 0, isUnsized: size == nil, state: state, error: error, isStandIn: isStandIn))
        cursor.position += 1
        guard state != .skipped else { return }
        totals.files += 1
        totals.bytes += size ?? 0
        if size == nil { totals.unsized += 1 }
        if state == .failed { totals.failed += 1 }
    }

    /// The reason why a name is invalid in its folder; nil for a valid name.
    private func problem(with name: [UInt8]) -> String? {
        if name.isEmpty { return "is empty" }
        if name.contains(0) { return "contains a NUL byte" }
        if name.contains(UInt8(ascii: "/")) { return "refers to another folder" }
        if folder.remotePath.count + 1 + name.count > Self.longestPath { return "makes the path too long" }
        return nil
    }

    /// A valid name to store in place of an invalid name.
    private static func replacement(for name: [UInt8]) -> [UInt8] {
        let safe = name.prefix(255).map { $0 == 0 || $0 == UInt8(ascii: "/") ? UInt8(ascii: "_") : $0 }
        return safe.isEmpty ? [UInt8(ascii: "_")] : safe
    }

    private var shownFolder: String { folder.remotePath.isEmpty ? "the endpoint's folder" : Self.shown(folder.remotePath) }

    private static func shown(_ name: [UInt8]) -> String {
        let text = String(decoding: name.prefix(200), as: UTF8.self)
        return name.count > 200 ? text + "…" : text
    }
}
