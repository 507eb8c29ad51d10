import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The sessions have more files than one transaction changes.
@Suite struct ResetTests {
    private static let count = 2 * QueueStore.maximumRowsPerSweep + 7

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open() async throws -> QueueStore {
        try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
    }

    /// Creates a database with a session whose files are all in one state, except for the first and the last, which failed. The first row
    /// stands for a file whose name can't be stored. The last row is a folder that could not be read. Each row has a checkpoint.
    private func preparedStore(_ state: String) async throws -> QueueStore {
        let store = try await open()
        var draft = SessionDraft.draft()
        draft.items = (0..<Self.count).map { ItemDraft(source: Data("/f\($0)".utf8), destination: Data("\($0)".utf8), size: 1) }
        try await store.commit([.saveAccount(1, .memory("a")), .session(1, rank: 0, draft)])
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    UPDATE file SET state = '\(state)', error = '{"failureClass":"sourceLost"}';
                    UPDATE file SET kind = 'folder', symbolic_links = 'skip', state = 'failed' WHERE position = \(Self.count - 1);
                    UPDATE file SET generation = 0, state = 'failed' WHERE position = 0;
                    INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity)
                        SELECT session, position, 'memory://a/', generation, x'00', 1, 'null' FROM file;
                    UPDATE session SET files_done = \(state == "completed" ? Self.count - 2 : 0),
                        files_failed = \(state == "completed" ? 2 : Self.count);
                    UPDATE total SET files_done = (SELECT files_done FROM session), files_failed = (SELECT files_failed FROM session),
                        bytes_done = \(Self.count);
                    """)
        }
        return store
    }

    private func count(_ store: QueueStore, _ query: String) async throws -> Int {
        try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(query)") ?? -1 }
    }

    private func expectReset(_ store: QueueStore, keepsCheckpoints: Bool) async throws {
        #expect(try await count(store, "file WHERE state = 'pending'") == Self.count - 2)
        #expect(try await count(store, "file WHERE state = 'failed'") == 1)
        #expect(try await count(store, "item WHERE kind = 'folder'") == 1)
        #expect(try await count(store, "setting WHERE name GLOB 'reset*'") == 0)
        // The checkpoint of the folder is removed with the folder's row.
        #expect(try await count(store, "checkpoint") == (keepsCheckpoints ? Self.count - 1 : 0))
        #expect(try await count(store, "discard") == (keepsCheckpoints ? 0 : Self.count))
        let status = try #require(try await store.sessions([1]).first?.status)
        #expect(status.statistics.filesFailed == 1 && status.statistics.filesDone == 0)
        let totals = try await store.totals(leavingOut: [])
        #expect(totals.states[.waiting]?.filesFailed == 1 && totals.states[.waiting]?.filesDone == 0)
    }

    @Test(arguments: [true, false]) func resetChangesRowsInBatches(_ isWhole: Bool) async throws {
        var store = try await preparedStore(isWhole ? "completed" : "failed")
        let state = isWhole ? "completed" : "failed"
        #expect(try await store.commitIdentifyingFailure([.resetSession(1, isWhole: isWhole)]).hasDeferredWork)
        #expect(try await count(store, "file WHERE state = '\(state)'") >= Self.count - QueueStore.maximumRowsPerSweep - 1)
        await store.close()
        store = try await open()
        _ = try await store.load(.memory)
        let before = try await count(store, "file WHERE state = '\(state)'")
        try await store.commit([.continueReset(1)])
        #expect(try await count(store, "file WHERE state = '\(state)'") >= before - QueueStore.maximumRowsPerSweep)
        try await store.finishMarked(1)
        try await expectReset(store, keepsCheckpoints: !isWhole)
        try await store.commit([.continueReset(1)])
        try await expectReset(store, keepsCheckpoints: !isWhole)
        if isWhole { #expect(try await count(store, "file WHERE generation = 2") == Self.count - 2, "each file gets one new generation") }
        await store.close()
    }

    @Test func resetsFailedFilesWithAllFiles() async throws {
        let store = try await preparedStore("completed")
        try await store.commit([.resetSession(1, isWhole: true), .resetSession(1, isWhole: false)])
        try await store.finishMarked()
        try await expectReset(store, keepsCheckpoints: false)
        await store.close()
    }

    @Test(arguments: [StoreWrite.deleteSession(1), .quarantine(1, "for a test")]) func removalEndsReset(_ end: StoreWrite) async throws {
        let store = try await preparedStore("completed")
        try await store.commit([.resetSession(1, isWhole: true), end])
        try await store.finishMarked()
        while try await store.sweep() {}
        #expect(try await count(store, "setting WHERE name GLOB 'reset*'") == 0)
        #expect(try await count(store, "file") == 0)
        await store.close()
    }

    @Test func resetCompletesBeforeRun() async throws {
        let fixture = try QueueFixture()
        let count = QueueStore.maximumRowsPerSweep + 2
        let path = try fixture.folder.file("f", size: 1)
        let store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        var draft = SessionDraft.draft()
        draft.items = (0..<count).map { ItemDraft(source: Data(path.string.utf8), destination: Data("\($0)".utf8), size: 1) }
        try await store.commit([
            .saveAccount(1, Account("a", endpoints: [fixture.memory.endpoint(host: "a")])), .session(1, rank: 0, draft, .failed),
        ])
        try await store.pool.write {
            try $0.execute(
                sql: "UPDATE file SET state = 'failed'; UPDATE session SET files_failed = files; UPDATE total SET files_failed = files")
        }
        await store.close()
        let queue = try await fixture.open()
        let id = try #require(await queue.sessionIDs().first)
        try await queue.retry(id)
        try await queue.start()
        await queue.waitUntilIdle()
        let status = try await queue.status(of: id)
        #expect(status.state == .completed && status.statistics.filesDone == count && status.statistics.filesFailed == 0)
        #expect(fixture.memory.completePaths.count == count)
        await queue.shutdown()
        try StoreInspection(fixture.folder.path.appending("store")).expectNoContradictions("after a reset")
    }

    // MARK: Cancelled sessions

    /// The unfinished uploads of a cancelled session move in batches to the outbox, the stored list of pending removals.
    @Test func movesUploadsOfCancelledSessionInBatches() async throws {
        var store = try await preparedStore("pending")
        try await store.pool.write { try $0.execute(sql: "UPDATE schedule SET state = 'cancelled'") }
        #expect(try await store.commitIdentifyingFailure([.discardPartial(1)]).hasDeferredWork)
        #expect(try await count(store, "discard") == QueueStore.maximumRowsPerSweep)
        #expect(try await count(store, "checkpoint") == Self.count - QueueStore.maximumRowsPerSweep)
        await store.close()
        store = try await open()
        _ = try await store.load(.memory)
        #expect(try await count(store, "discard") <= 2 * QueueStore.maximumRowsPerSweep)
        await store.close()
        let queue = try await TransferQueue(storage: .folder(folder.path.appending("store")), transports: [MemoryTransport()])
        await queue.deferredDeletion.waitUntilDone()
        await queue.shutdown()
        store = try await open()
        #expect(try await count(store, "discard") == Self.count)
        #expect(try await count(store, "checkpoint") == 0)
        #expect(try await count(store, "setting WHERE name GLOB 'discard*'") == 0)
        #expect(try await count(store, "file WHERE generation = 2") == Self.count - 1, "each file gets a new generation")
        await store.close()
    }

    /// Only the last batch contains removals at an endpoint of the account. The queue performs these removals without a delay.
    @Test func performsRemovalsOfLaterBatchesWithoutDelay() async throws {
        let store = try await preparedStore("pending")
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE schedule SET state = 'paused'")
            try db.execute(sql: "UPDATE checkpoint SET endpoint = 'memory://gone/' WHERE position < \(2 * QueueStore.maximumRowsPerSweep)")
        }
        await store.close()
        let queue = try await TransferQueue(storage: .folder(folder.path.appending("store")), transports: [MemoryTransport()])
        try await queue.start()
        await queue.waitUntilContentRemoved()
        try await queue.cancel(try #require(await queue.sessionIDs().first), discarding: true)
        await queue.deferredDeletion.waitUntilDone()
        await queue.waitUntilContentRemoved()
        #expect(try StoreInspection(folder.path.appending("store")).count("discard") == 0)
        #expect(try await queue.statistics().removalsDue == 0)
        await queue.shutdown()
    }

    /// Unfinished uploads that are not in the outbox yet stay with the session in the quarantine.
    @Test func quarantineEndsMoveToOutbox() async throws {
        let store = try await preparedStore("failed")
        try await store.commit([.discardPartial(1)])
        let rest = try await count(store, "checkpoint")
        #expect(rest > 0)
        try await store.commit([.quarantine(1, "test"), .continueDiscard(1), .discardPartial(1)])
        while try await store.sweep() {}
        #expect(try await count(store, "discard") == Self.count - rest)
        #expect(try await count(store, "quarantined_row WHERE origin = 'checkpoint'") == rest)
        await store.close()
    }

    /// If the app retries the session during the move to the outbox, the remaining uploads stay and can resume.
    @Test func retryEndsMoveToOutbox() async throws {
        let store = try await preparedStore("failed")
        try await store.commit([.discardPartial(1), .resetSession(1, isWhole: false)])
        let rest = try await count(store, "checkpoint")
        #expect(rest > 0)
        while try await store.sweep() {}
        #expect(try await count(store, "checkpoint") == rest)
        #expect(try await count(store, "setting WHERE name GLOB 'discard*'") == 0)
        await store.close()
    }
}

/// All sessions of a group share the row limit of a transaction.
extension ResetTests {
    private static let limit = 1_000
    private static let filesPerSession = 700
    private static let keys: ClosedRange<SessionKey> = 1...5
    private static let total = filesPerSession * 5
    /// The number of rows that a transaction may change beyond the limit, for example the rows of the sessions and of the totals.
    private static let tolerance = 100

    private func openWithLimit() async throws -> QueueStore {
        try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system, rowsPerSweep: Self.limit)
    }

    /// Creates a database with five sessions, whose files are all in one state.
    ///
    /// - Parameter hasCheckpoints: Whether each file has a checkpoint.
    private func preparedGroup(_ fileState: String, _ state: SessionState = .waiting, hasCheckpoints: Bool) async throws -> QueueStore {
        let store = try await openWithLimit()
        var writes: [StoreWrite] = [.saveAccount(1, .memory("a"))]
        for key in Self.keys {
            var draft = SessionDraft.draft()
            draft.items = (0..<Self.filesPerSession).map {
                ItemDraft(source: Data("/f\($0)".utf8), destination: Data("\($0)".utf8), size: 1)
            }
            writes.append(.session(key, rank: key, draft, state))
        }
        try await store.commit(writes)
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    UPDATE file SET state = '\(fileState)';
                    UPDATE session SET files_done = CASE WHEN '\(fileState)' = 'completed' THEN files ELSE 0 END,
                        files_failed = CASE WHEN '\(fileState)' = 'failed' THEN files ELSE 0 END;
                    UPDATE total SET files_done = (SELECT sum(files_done) FROM session),
                        files_failed = (SELECT sum(files_failed) FROM session);
                    """)
            guard hasCheckpoints else { return }
            try db.execute(
                sql: """
                    INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity)
                        SELECT session, position, 'memory://a/', generation, x'00', 1, 'null' FROM file
                    """)
        }
        return store
    }

    /// Checks that all files of the sessions are pending, and that no operation is in progress.
    private func expectPending(_ store: QueueStore, _ count: Int) async throws {
        #expect(try await self.count(store, "file") == count)
        #expect(try await self.count(store, "file WHERE state = 'pending'") == count)
        #expect(try await self.count(store, "setting WHERE name GLOB 'reset *' OR name GLOB 'discard *'") == 0)
        let statistics = try await store.sessions(Array(Self.keys)).map(\.status.statistics)
        #expect(statistics.allSatisfy { $0.filesFailed == 0 && $0.filesDone == 0 })
        let figures = try #require(try await store.totals(leavingOut: []).states[.waiting])
        #expect(figures.filesFailed == 0 && figures.filesDone == 0)
    }

    @Test(arguments: [true, false]) func resetOfGroupChangesRowsInBatches(_ isWhole: Bool) async throws {
        var store = try await preparedGroup(isWhole ? "completed" : "failed", hasCheckpoints: !isWhole)
        let changes = RowChangeCounter()
        try await changes.observe(store)
        let pending = try await store.commitIdentifyingFailure(Self.keys.map { .resetSession($0, isWhole: isWhole) })
        #expect(pending.hasDeferredWork)
        #expect(try await count(store, "file WHERE state = 'pending'") == Self.limit)
        #expect(try await count(store, "setting WHERE name GLOB 'reset *'") == 4, "only the reset of the first session is complete")
        let statistics = try await store.sessions(Array(Self.keys)).map(\.status.statistics)
        #expect(statistics.count == 5 && statistics.allSatisfy { $0.filesFailed == 0 && $0.filesDone == 0 })
        await store.abandon()
        store = try await openWithLimit()
        _ = try await store.load(.memory)
        try await changes.observe(store)
        try await store.finishMarked()
        #expect(changes.maximum <= Self.limit + Self.tolerance)
        try await expectPending(store, Self.total)
        #expect(try await count(store, "file WHERE generation = \(isWhole ? 2 : 1)") == Self.total)
        #expect(try await count(store, "checkpoint") == (isWhole ? 0 : Self.total))
        await store.close()
    }

    @Test func cancellationOfGroupMovesCheckpointsInBatches() async throws {
        let store = try await preparedGroup("pending", .cancelled, hasCheckpoints: true)
        let changes = RowChangeCounter()
        try await changes.observe(store)
        let pending = try await store.commitIdentifyingFailure(Self.keys.map { .discardPartial($0) })
        #expect(pending.hasDeferredWork)
        #expect(try await count(store, "discard") == Self.limit)
        await store.abandon()
        try await expectMoveToOutbox(changes, movedByOpening: 0)
    }

    /// Opening the queue moves the checkpoints of the first session. The deferred work moves the checkpoints of the other sessions.
    @Test func opensWithManyCancelledSessions() async throws {
        let store = try await preparedGroup("pending", .cancelled, hasCheckpoints: true)
        await store.abandon()
        try await expectMoveToOutbox(RowChangeCounter(), movedByOpening: Self.filesPerSession)
    }

    /// Opens the database twice, and checks that the deferred work then moves all checkpoints to the outbox.
    private func expectMoveToOutbox(_ changes: RowChangeCounter, movedByOpening: Int) async throws {
        var store = try await openWithLimit()
        let before = try await count(store, "discard")
        for _ in 0..<2 {
            try await changes.observe(store)
            _ = try await store.load(.memory)
            #expect(try await count(store, "discard") == before + movedByOpening)
            #expect(try await count(store, "setting WHERE name GLOB 'discard *'") == 4)
            await store.abandon()
            store = try await openWithLimit()
        }
        try await changes.observe(store)
        try await store.finishMarked()
        // To move a checkpoint, the queue deletes a row, adds another row, and gives the file a new generation.
        #expect(changes.maximum <= 3 * Self.limit + Self.tolerance)
        #expect(try await count(store, "discard") == Self.total)
        #expect(try await count(store, "checkpoint") == 0)
        #expect(try await count(store, "setting WHERE name GLOB 'discard *'") == 0)
        #expect(try await count(store, "file WHERE generation = 2") == Self.total, "each file gets a new generation")
        await store.close()
    }

    @Test func changesSessionsDuringReset() async throws {
        let store = try await preparedGroup("failed", hasCheckpoints: true)
        try await store.commit(Self.keys.map { .resetSession($0, isWhole: false) })
        // Within the limit, the queue moves all checkpoints of session 3, and 300 checkpoints of session 4.
        try await store.commit([.discardPartial(3), .discardPartial(4)])
        // The retry keeps the other 400 checkpoints of session 4.
        try await store.commit([.resetSession(4, isWhole: false), .deleteSession(5), .resetSession(2, isWhole: true)])
        while try await store.sweep() {}
        try await store.finishMarked()
        try await expectPending(store, Self.total - Self.filesPerSession)
        for (key, rest) in [(1, Self.filesPerSession), (2, 0), (3, 0), (4, 400)] {
            #expect(try await count(store, "checkpoint WHERE session = \(key)") == rest, "session \(key)")
        }
        #expect(try await count(store, "discard") == 3 * Self.filesPerSession + 300)
        await store.close()
    }

    @Test func removesUploadsAtEarlierAccount() async throws {
        let store = try await preparedGroup("pending", hasCheckpoints: true)
        try await store.commit([.saveAccount(2, .memory("b"))] + Self.keys.map { .changeAccount($0, 2) })
        #expect(try await count(store, "discard") == Self.limit)
        try await store.commit([.deleteSession(3), .resetSession(4, isWhole: false)])
        while try await store.sweep() {}
        try await store.finishMarked()
        #expect(try await count(store, "discard WHERE endpoint LIKE '%memory://a/%'") == Self.total)
        #expect(try await count(store, "checkpoint") == 0)
        await store.close()
    }

    // MARK: Large sessions

    @Test func restoredSessionContinuesReset() async throws {
        var store = try await preparedStore("completed")
        try await store.commit([.resetSession(1, isWhole: true), .quarantine(1, "for a test")])
        while try await store.sweep() {}
        let number = try #require(try await store.quarantined().first?.number)
        try await store.restoreQuarantined(number)
        await store.close()
        store = try await open()
        _ = try await store.load(.memory)
        try await store.finishMarked()
        try await expectReset(store, keepsCheckpoints: false)
        await store.close()
    }

    /// Another queue continues the withdrawn session, so the session's unfinished uploads stay on the server.
    @Test func withdrawalDeletesCheckpointsInBatches() async throws {
        let store = try await preparedStore("pending")
        let changes = RowChangeCounter()
        try await changes.observe(store)
        try await store.commit([.dropCheckpoints(1), .deleteSession(1)])
        while try await store.sweep() {}
        #expect(changes.maximum <= QueueStore.maximumRowsPerSweep + Self.tolerance)
        for table in ["checkpoint", "file", "session", "discard", "removal"] { #expect(try await count(store, table) == 0, "\(table)") }
        await store.close()
    }
}
