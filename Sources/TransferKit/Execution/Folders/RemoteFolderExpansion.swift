import Foundation
import SystemPackage
import TransferCore

/// Expands a remote folder into the files of a session. Lists the folder, and then its subfolders in the order in which they were found.
/// Stores one row for each file and folder.
///
/// Folders that are not listed yet are rows in the database, so they take up no memory, regardless of their number and depth. After all rows of
/// a folder have been stored, the folder is not listed again, even after a crash. The last rows of a folder may be stored with the rows of the
/// next folders, but no later than the end of the run.
actor RemoteFolderExpansion {
    /// The key of the current folder's history among the file histories of a run. The keys of files are their positions, which start at 0.
    static let position: Int64 = -1

    /// The number of waiting rows at which all waiting rows are stored.
    private static let batchSize = 1_000
    /// The time since the last write after which the next added step triggers a write of all waiting rows.
    private static let longestWait = Duration.seconds(1)
    /// The number of folders to read from the database at a time.
    private static let pageSize = 256

    private let context: RunContext
    private let record: EndpointRecord
    /// The history of the folder whose listing has begun but has neither completed nor failed; nil if there is no such folder.
    private(set) var history: FileHistory?

    private var cursor = FolderCatalogue.Cursor(position: 0, directory: 0, bytes: 0)
    /// The catalogue of the last attempt for the current folder; nil before the first attempt, and after the catalogue's rows were deleted.
    private var catalogue: FolderCatalogue?
    /// The steps that are not stored yet.
    private var steps: [ExpansionStep] = []
    /// The number of rows in `steps`.
    private var rows = 0
    /// The amounts that `steps` adds to the session's statistics.
    private var growth = ManifestTotals()
    private var flushedAt: Duration

    /// - Parameter history: The history of the folder that an earlier run of the session, in the same process, could not list; nil if there is no
    ///   such folder.
    init(context: RunContext, history: FileHistory?) {
        self.context = context
        self.history = history
        flushedAt = context.clock.now()
        record = EndpointRecord(location: context.live.endpointBefore)
    }

    /// Lists an item's folders, resuming after the folders that an earlier run listed.
    ///
    /// - Parameter start: The numbers of the next rows. The database has no rows with these or higher numbers.
    /// - Returns: The outcome of the run if the item can't be listed completely now; otherwise nil.
    /// - Throws: `CancellationError`; ``QueueError`` when the database can't be used.
    func run(_ item: PendingItem, from start: ManifestStart) async throws -> RunOutcome? {
        let room = FileSize.sessionMaximum.subtractingSaturated(context.live.bytesKnown)
        cursor = FolderCatalogue.Cursor(position: start.position, directory: start.directory, bytes: max(0, room))
        var next = item.nextDirectory ?? start.directory
        if item.nextDirectory == nil {
            let root = RemoteFolder(
                number: next, parent: item.directory, source: item.source, destination: item.destination, remotePath: item.remotePath)
            next += 1
            if let outcome = try await list(root, of: item) { return outcome }
        }
        while true {
            try await flush()
            let folders = try await context.store.remoteFolders(of: context.key, from: next, limit: Self.pageSize)
            guard let last = folders.last else { break }
            next = last.number + 1
            for folder in folders {
                guard let outcome = try await list(folder, of: item) else { continue }
                try await flush()
                return outcome
            }
        }
        try await add(.finish(item: item.sequence, ManifestTotals()), rows: 1, growth: ManifestTotals(files: -1))
        try await flush()
        return nil
    }

    // MARK: One folder

    private func list(_ folder: RemoteFolder, of item: PendingItem) async throws -> RunOutcome? {
        guard let availability = await context.currentEndpoints() else { throw CancellationError() }
        catalogue = nil
        let work = FolderListingWork(resolvesLinks: item.symbolicLinks == .followFiles) { [self] in try await begin(folder, of: item) }
        let file = PendingFile(
            position: Self.position, source: item.path, destination: folder.remotePath, size: nil, generation: 1, confirmed: 0,
            kind: .remoteFolder)
        var runner = FileRunner(
            context: context, record: record, file: file, checkpoints: [:], history: history ?? FileHistory(), availability: availability,
            listing: work)
        let outcome: FileRunner.Outcome
        do {
            outcome = try await runner.run(from: try await runner.next())
        } catch is CancellationError {
            history = runner.history
            // Stores the rows of listed folders, so that these folders are not listed again. The queue still accepts this step from an
            // interrupted run.
            try? await flush()
            throw CancellationError()
        }
        history = runner.history
        switch outcome {
        case .completed:
            history = nil
            guard let catalogue else { return nil }
            cursor = await catalogue.cursor
            let totals = await catalogue.totals
            try await add(.listed(item: item.sequence, totals, next: folder.number + 1), rows: 1, growth: totals)
            return nil
        case .givenUp(let error):
            history = nil
            try await giveUp(folder, of: item, error)
            guard context.options.onItemFailure == .failSession else { return nil }
            try await flush()
            return .finished(failure: error, ignoresNewFiles: true)
        case .sessionFailed(let error): return .finished(failure: error, ignoresNewFiles: true)
        case .waits(let error):
            let now = context.clock.now()
            return .backoff(max(.zero, (runner.history.dueAt ?? now) - now), error ?? availability.error)
        case .endpointsUnavailable(let error): return .endpointsUnavailable(error)
        case .accountBlocked(let error, let account): return .accountBlocked(error, account)
        case .noSpace(let error): return .noSpace(error)
        }
    }

    /// Begins an attempt: deletes the rows of the last attempt for this folder in this run, and creates the catalogue.
    private func begin(_ folder: RemoteFolder, of item: PendingItem) async throws -> FolderCatalogue {
        try await deleteRows(of: item)
        let new = FolderCatalogue(
            of: folder, context.key, in: context.store, at: cursor, maximumNames: context.maximumListedNames
        ) { [self] batch, areLast in
            try await add(.add(item: item.sequence, batch), rows: batch.count)
            if !areLast { try await flush() }
        }
        catalogue = new
        return new
    }

    private func giveUp(_ folder: RemoteFolder, of item: PendingItem, _ error: TransferError) async throws {
        try await deleteRows(of: item)
        var batch = ManifestBatch()
        batch.entries = [
            ManifestEntry(
                position: cursor.position, directory: folder.parent, kind: .remoteFolder, source: folder.source,
                destination: folder.destination, size: 0, state: .failed, error: error, symbolicLinks: item.symbolicLinks)
        ]
        cursor.position += 1
        let totals = ManifestTotals(files: 1, failed: 1)
        try await add(
            .group([.add(item: item.sequence, batch), .listed(item: item.sequence, totals, next: folder.number + 1)]), rows: 2,
            growth: totals)
    }

    /// Deletes the rows of a folder that was not listed completely.
    private func deleteRows(of item: PendingItem) async throws {
        guard let catalogue, await catalogue.hasRows else { return }
        self.catalogue = nil
        try await flush()
        while let present = try await context.store.pendingItem(of: context.key), present.sequence == item.sequence, present.hasRows {
            try Task.checkCancellation()
            try await context.send(.expansion(.discard(item: item.sequence, limit: FolderExpansion.maximumDeletedRows)))
        }
    }

    // MARK: Steps

    private func add(_ step: ExpansionStep, rows count: Int, growth more: ManifestTotals = ManifestTotals()) async throws {
        steps.append(step)
        rows += count
        growth += more
        if rows >= Self.batchSize || context.clock.now() - flushedAt >= Self.longestWait { try await flush() }
    }

    /// Makes all steps durable, in one transaction.
    private func flush() async throws {
        flushedAt = context.clock.now()
        guard !steps.isEmpty else { return }
        let (taken, growth) = (steps, growth)
        steps = []
        rows = 0
        self.growth = ManifestTotals()
        try await context.send(.expansion(taken.count == 1 ? taken[0] : .group(taken)))
        context.live.found(growth)
    }
}
