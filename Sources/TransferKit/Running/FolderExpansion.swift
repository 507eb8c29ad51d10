import SystemPackage
import TransferCore

/// Brings all items of a session into its manifest, the list of files in the order in which they go. Folders are read for that.
///
/// Called by the run of a session before its first file, and again when no file is left, as items may have been added. Nothing of a folder is
/// held in memory but a piece: rows go to the store in batches, and a batch is durable before the next is read. Remote folders are the part of
/// ``RemoteFolderExpansion``.
package struct FolderExpansion: Sendable {
    private static let batch = 1_000
    /// Rows that are deleted take less time than rows that are made.
    static let discardedBatch = 10_000

    private let key: SessionKey
    private let store: QueueStore
    private let fault: FolderFault?
    private let remote: (@Sendable (PendingItem, ManifestStart) async throws -> RunOutcome?)?
    private let tell: @Sendable (ExpansionStep) async throws -> Void
    private let grow: @Sendable (ManifestTotals) -> Void
    private let bytesKnown: @Sendable () -> Int64
    private let noteSkipped: @Sendable (FilePath, Int) -> Void

    /// - Parameters:
    ///   - fault: What goes wrong with reading; for tests.
    ///   - tell: Makes a step durable.
    ///   - grow: Told by how much the session's figures grew; its folders were counted as one file each.
    package init(
        of key: SessionKey, in store: QueueStore, fault: FolderFault? = nil, tell: @escaping @Sendable (ExpansionStep) async throws -> Void,
        grow: @escaping @Sendable (ManifestTotals) -> Void = { _ in }
    ) {
        self.init(of: key, in: store, fault: fault, remote: nil, tell: tell, grow: grow, noteSkipped: { _, _ in })
    }

    /// - Parameters:
    ///   - bytesKnown: How many bytes the session's files come to now.
    ///   - remote: Brings the remote folder of an item into the manifest as a whole; returns how the run ends if it can't now.
    ///   - noteSkipped: Called with each folder in which entries were left out, and how many.
    init(
        of key: SessionKey, in store: QueueStore, fault: FolderFault? = nil, bytesKnown: @escaping @Sendable () -> Int64 = { 0 },
        remote: (@Sendable (PendingItem, ManifestStart) async throws -> RunOutcome?)?,
        tell: @escaping @Sendable (ExpansionStep) async throws -> Void, grow: @escaping @Sendable (ManifestTotals) -> Void,
        noteSkipped: @escaping @Sendable (FilePath, Int) -> Void
    ) {
        self.bytesKnown = bytesKnown
        self.noteSkipped = noteSkipped
        self.key = key
        self.store = store
        self.fault = fault
        self.remote = remote
        self.tell = tell
        self.grow = grow
    }

    /// Returns when no item is left that is not in the manifest.
    ///
    /// - Returns: How the run ends, if a remote folder can't be listed now.
    /// - Throws: `CancellationError` when the run was interrupted or the session is gone; ``QueueError`` when the store can't be used;
    ///   ``TransferError`` when this machine lacks descriptors. The next run goes on from there.
    @discardableResult @concurrent
    package func run() async throws -> RunOutcome? {
        var last: Int64?
        while let item = try await store.pendingItem(of: key) {
            try Task.checkCancellation()
            // The queue takes no more from a run that it has ended.
            guard item.sequence != last else { throw CancellationError() }
            last = item.sequence
            guard item.kind.isFolder else {
                try await tell(.takeFiles(limit: Self.batch))
                continue
            }
            let start = try await begin(item)
            if item.kind == .folder {
                try await expand(item, from: start)
            } else if let outcome = try await remote?(item, start) {
                return outcome
            }
        }
        return nil
    }

    private func expand(_ item: PendingItem, from start: ManifestStart) async throws {
        let room = FileSize.sessionMaximum.subtractingSaturated(bytesKnown())
        let walk = await DiskThread.run { [storage = store.folder, fault] in
            FolderWalk(item, from: start, excluding: storage, mostBytes: room, fault: fault)
        }
        while true {
            let (batch, withdrawn) = try await walk.next(Self.batch)
            if let withdrawn { try await withdraw(withdrawn) }
            guard batch.count > 0 else { break }
            try await tell(.add(item: item.sequence, batch))
            try Task.checkCancellation()
        }
        let totals = await walk.totals
        let skipped = await walk.skipped
        if skipped > 0 { noteSkipped(item.path, skipped) }
        try await tell(.finish(item: item.sequence, totals))
        grow(ManifestTotals(files: totals.files - 1, failed: totals.failed, bytes: totals.bytes))
    }

    /// Takes out the rows of a folder that could not be read to its end.
    private func withdraw(_ rows: WithdrawnRows) async throws {
        for _ in stride(from: 0, to: rows.count, by: Self.discardedBatch) {
            try Task.checkCancellation()
            try await tell(.withdraw(rows.start, limit: Self.discardedBatch))
        }
    }

    /// Notes where the folder's rows begin, and takes out those of a reading that was cut off.
    private func begin(_ item: PendingItem) async throws -> ManifestStart {
        if item.start == nil { try await tell(.begin(item: item.sequence)) }
        while true {
            try Task.checkCancellation()
            guard let begun = try await store.pendingItem(of: key), begun.sequence == item.sequence, let start = begun.start else {
                throw CancellationError()
            }
            guard begun.hasRows else { return start }
            try await tell(.discard(item: item.sequence, limit: Self.discardedBatch))
        }
    }
}
