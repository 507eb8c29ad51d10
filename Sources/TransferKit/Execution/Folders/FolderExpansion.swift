import SystemPackage
import TransferCore

/// Expands the items of a session into the session's manifest, the stored and ordered list of the session's files. Reads local folders.
///
/// Each run of a session expands the session's new items. Rows go to the database in batches, and the run sends the files of a batch while the
/// next one is read. Each batch is durable before the next batch is read, so only part of a folder is in memory at a time. An interrupted
/// expansion resumes after the last batch. ``RemoteFolderExpansion`` expands remote folders.
package struct FolderExpansion: Sendable {
    private static let batchSize = 1_000
    /// The maximum number of rows to delete from each table in one step. Larger than `batchSize`, because deleting rows takes less time than
    /// inserting them.
    static let maximumDeletedRows = 10_000

    private let key: SessionKey
    private let store: QueueStore
    private let fault: FolderFault?
    private let maximumNameBytes: Int
    private let remote: (@Sendable (PendingItem, ManifestStart) async throws -> RunOutcome?)?
    private let send: @Sendable (ExpansionStep) async throws -> Void
    private let grow: @Sendable (ManifestTotals) -> Void
    private let bytesKnown: @Sendable () -> Int64
    private let reading: @Sendable (FilePath) -> @Sendable () -> Void
    private let noteSkipped: @Sendable (FilePath, Int) -> Void

    /// Creates the expansion of a session without remote folders.
    ///
    /// - Parameters:
    ///   - fault: Injects read errors in tests.
    ///   - maximumNameBytes: The memory for the names of entries in the folders that are being read, in bytes.
    ///   - send: Makes a step durable.
    ///   - grow: Receives the amounts to add to the session's statistics. An amount can be negative, because the statistics count a folder item
    ///     as one file until the folder's first rows are stored.
    package init(
        of key: SessionKey, in store: QueueStore, fault: FolderFault? = nil, maximumNameBytes: Int = 32 << 20,
        send: @escaping @Sendable (ExpansionStep) async throws -> Void,
        grow: @escaping @Sendable (ManifestTotals) -> Void = { _ in }
    ) {
        self.init(
            of: key, in: store, fault: fault, maximumNameBytes: maximumNameBytes, remote: nil, send: send, grow: grow,
            noteSkipped: { _, _ in })
    }

    /// - Parameters:
    ///   - bytesKnown: Returns the current total size of the session's files, in bytes.
    ///   - remote: Expands an item's remote folder into the manifest. Returns the outcome of the run if the folder can't be listed now.
    ///   - reading: Called before a batch of a local folder item is read. Returns a function to call afterwards.
    ///   - noteSkipped: Receives the path of each local folder item with skipped entries, and the number of entries that this run skipped in
    ///     the folder and in its subfolders.
    init(
        of key: SessionKey, in store: QueueStore, fault: FolderFault? = nil, maximumNameBytes: Int = 32 << 20,
        bytesKnown: @escaping @Sendable () -> Int64 = { 0 },
        remote: (@Sendable (PendingItem, ManifestStart) async throws -> RunOutcome?)?,
        send: @escaping @Sendable (ExpansionStep) async throws -> Void, grow: @escaping @Sendable (ManifestTotals) -> Void,
        reading: @escaping @Sendable (FilePath) -> @Sendable () -> Void = { _ in {} },
        noteSkipped: @escaping @Sendable (FilePath, Int) -> Void
    ) {
        self.reading = reading
        self.bytesKnown = bytesKnown
        self.noteSkipped = noteSkipped
        self.key = key
        self.store = store
        self.fault = fault
        self.maximumNameBytes = maximumNameBytes
        self.remote = remote
        self.send = send
        self.grow = grow
    }

    /// Expands all pending items; returns when the manifest contains them. Files that are already in the manifest can be sent at the same time.
    ///
    /// - Returns: The outcome of the run if a remote folder can't be listed now; otherwise nil.
    /// - Throws: `CancellationError` when the run was interrupted or the session was removed; ``QueueError`` when the database can't be used;
    ///   ``TransferError`` when a local folder can't be read, for example because no file descriptor is free. After each of these errors, the
    ///   next run resumes with the same item.
    @discardableResult @concurrent
    package func run() async throws -> RunOutcome? {
        var last: Int64?
        while let item = try await store.pendingItem(of: key) {
            try Task.checkCancellation()
            // If the item is still pending after its expansion, the queue has ended this run and ignored the run's last step.
            guard item.sequence != last else { throw CancellationError() }
            last = item.sequence
            guard item.kind.isFolder else {
                try await send(.takeFiles(limit: Self.batchSize))
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

    /// Deletes the rows that an interrupted expansion of a local folder left, if an earlier version of TransferKit performed it. These rows are
    /// not part of the manifest, so they must be deleted before the first file is sent.
    func deleteLeftoverRows() async throws {
        guard let item = try await store.pendingItem(of: key), item.kind == .folder, item.hasRows else { return }
        _ = try await begin(item)
    }

    private func expand(_ item: PendingItem, from start: ManifestStart) async throws {
        // Until the first rows are stored, the item itself counts as one file.
        var countsItem = item.place == nil
        if item.place != [] {
            let room = FileSize.sessionMaximum.subtractingSaturated(bytesKnown())
            let walk = FolderWalk(
                item, from: start, withoutLinks: store.sources.withoutLinks(item.path), excluding: store.folder, maximumBytes: room,
                maximumNameBytes: maximumNameBytes, fault: fault)
            while true {
                let (batch, place) = try await next(of: walk, item.path)
                guard batch.count > 0 else { break }
                try await send(.read(item: item.sequence, batch, place: place))
                var totals = batch.totals
                if countsItem { totals.files -= 1 }
                countsItem = false
                grow(totals)
                try Task.checkCancellation()
            }
            let skipped = await walk.skipped
            if skipped > 0 { noteSkipped(item.path, skipped) }
        }
        try await send(.finish(item: item.sequence, ManifestTotals()))
        // In the statistics that this run read from the database, a partly read folder added 1 to the number of files of unknown size.
        grow(ManifestTotals(files: countsItem ? -1 : 0, unsized: item.place == nil ? 0 : -1))
    }

    private func next(of walk: FolderWalk, _ path: FilePath) async throws -> (ManifestBatch, place: [FolderResumePoint]) {
        let end = reading(path)
        defer { end() }
        return try await walk.next(Self.batchSize)
    }

    /// Stores the numbers at which the folder's rows begin, and deletes the rows that an interrupted expansion left behind.
    private func begin(_ item: PendingItem) async throws -> ManifestStart {
        if item.start == nil { try await send(.begin(item: item.sequence)) }
        while true {
            try Task.checkCancellation()
            guard let begun = try await store.pendingItem(of: key), begun.sequence == item.sequence, let start = begun.start else {
                throw CancellationError()
            }
            guard begun.hasRows else { return start }
            try await send(.discard(item: item.sequence, limit: Self.maximumDeletedRows))
        }
    }
}
