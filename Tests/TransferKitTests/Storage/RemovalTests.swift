import Foundation
import GRDB
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct RemovalTests {
    private let folder: TemporaryFolder
    private let count = 2 * QueueStore.maximumRowsPerSweep + 5_000
    private let account = Account.memory("a")

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open() async throws -> QueueStore {
        try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
    }

    private func checkpoint(_ position: Int64) -> StoreWrite {
        .file(
            1, position: position,
            .checkpoint(
                Checkpoint(data: Data("upload \(position)".utf8), confirmed: 1), endpoint: account.endpoints[0], generation: 1,
                SourceIdentity(size: 1, modificationTime: 0, inode: 0, device: 0, bootID: "")))
    }

    /// Creates a database with a small session and a session with very many files, two of which have checkpoints.
    private func preparedStore() async throws -> QueueStore {
        let store = try await open()
        var large = SessionDraft.draft()
        large.tags = ["large"]
        large.items = (0..<count).map {
            ItemDraft(source: Data("/file-\($0)".utf8), destination: Data("\($0)".utf8), size: 1)
        }
        try await store.commit([
            .saveAccount(1, account), .session(1, rank: 0, large), .session(2, rank: 1, .draft()), checkpoint(3),
            checkpoint(Int64(count) - 1),
        ])
        return store
    }

    private func rowCount(_ store: QueueStore, _ table: String) async throws -> Int {
        try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(table)") ?? 0 }
    }

    private func expectRemoved(_ store: QueueStore) async throws {
        #expect(try await store.load(.memory).0.sessions.map(\.key) == [2])
        #expect(try await store.sessions(tagged: "large").isEmpty)
        #expect(try await store.dueDiscards(at: .distantFuture, limit: 9).due.count == 2)
    }

    @Test func removesLargeSessionImmediatelyAndItsRowsLater() async throws {
        var store = try await preparedStore()
        #expect(try await store.commitIdentifyingFailure([.deleteSession(1)]).hasDeferredWork, "some rows remain to be deleted")
        try await expectRemoved(store)
        #expect(try await rowCount(store, "file") > QueueStore.maximumRowsPerSweep)
        #expect(try await store.sweep())
        await store.close()
        store = try await open()
        try await expectRemoved(store)
        while try await store.sweep() {}
        for table in ["file", "session", "removal", "schedule"] {
            #expect(try await rowCount(store, table) == (table == "removal" ? 0 : 1), "\(table)")
        }
        #expect(try await rowCount(store, "checkpoint") == 0)
        #expect(try await rowCount(store, "session_tag") == 0)
        try await expectRemoved(store)
        await store.close()
    }

    /// Creates a checkpoint for each file of the large session.
    private func addCheckpoints(to store: QueueStore) async throws {
        let address = account.endpoints[0].address
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity)
                    SELECT session, position, ?, 1, CAST(position AS BLOB), 0, 'null' FROM file WHERE session = 1
                    """, arguments: [address])
        }
    }

    @Test(arguments: [false, true]) func movesCheckpointsOfRemovedSessionInBatches(isRunning: Bool) async throws {
        var store = try await preparedStore()
        try await addCheckpoints(to: store)
        let changes = ChangeCounter()
        try await changes.observe(store)
        try await store.commit([.deleteSession(1, isRunning: isRunning), .deleteSession(2), .deleteAccount(1)])
        if isRunning {
            while try await store.sweep() {}
            #expect(try await store.dueDiscards(at: .distantFuture, limit: 1).due.isEmpty, "the run can still complete the files")
            // The run completes a file whose checkpoint was moved, and a file whose checkpoint was not moved. The run also saves a
            // checkpoint of a third file.
            for position in [7, Int64(count) - 7] { try await store.commit([.dropDiscard(1, position: position, account.endpoints[0])]) }
            try await store.commit([
                .holdDiscard(1, position: Int64(count) - 9, Checkpoint(data: Data("late".utf8), confirmed: 9), account.endpoints[0])
            ])
        } else {
            #expect(try await store.sweep())
        }
        await store.close()
        store = try await open()
        try await changes.observe(store)
        let (scheduler, _, _) = try await store.load(.memory)
        #expect(scheduler.sessions.isEmpty && scheduler.accounts.isEmpty)
        while try await store.sweep() {}
        for table in ["checkpoint", "file", "session", "removal"] { #expect(try await rowCount(store, table) == 0, "\(table)") }
        let pendingRemovals = try await store.pool.read { db in
            try Data.fetchAll(
                db, sql: "SELECT data FROM discard WHERE held_by IS NULL AND json_extract(endpoint, '$.transport') = 'memory'")
        }.map { String(decoding: $0, as: UTF8.self) }
        let expected = (0..<count).map { "\($0)" }
        #expect(
            pendingRemovals.sorted()
                == (isRunning ? expected.filter { !["7", "\(count - 7)", "\(count - 9)"].contains($0) } + ["late"] : expected).sorted())
        // To move a checkpoint, the queue deletes a row and adds another row.
        #expect((QueueStore.maximumRowsPerSweep...2 * QueueStore.maximumRowsPerSweep + 100).contains(changes.maximum))
        await store.close()
    }

    @Test func movesCheckpointsAfterChangeOfAccountInBatches() async throws {
        var store = try await preparedStore()
        try await addCheckpoints(to: store)
        let changes = ChangeCounter()
        try await changes.observe(store)
        #expect(try await store.commitIdentifyingFailure([.saveAccount(2, .memory("b")), .changeAccount(1, 2)]).hasDeferredWork)
        await store.close()
        store = try await open()
        try await changes.observe(store)
        try await store.finishMarked()
        #expect(try await rowCount(store, "checkpoint") == 0)
        #expect(try await rowCount(store, "discard WHERE endpoint LIKE '%memory://a%'") == count)
        #expect(try await rowCount(store, "file WHERE session = 1 AND generation = 2") == count)
        // To move a checkpoint, the queue deletes a row, adds another row, and gives the file a new generation.
        #expect((QueueStore.maximumRowsPerSweep...3 * QueueStore.maximumRowsPerSweep + 100).contains(changes.maximum))
        await store.close()
    }

    @Test func deletesAccountDuringRemoval() async throws {
        let store = try await preparedStore()
        try await store.commit([.deleteSession(1), .deleteSession(2), .deleteAccount(1)])
        let loaded = try await store.load(.memory).0
        #expect(loaded.accounts.isEmpty && loaded.sessions.isEmpty)
        while try await store.sweep() {}
        #expect(try await rowCount(store, "file") == 0)
        await store.close()
    }

    @Test func doesNotReuseKeyOfQuarantinedSession() async throws {
        let store = try await open()
        try await store.commit([
            .saveAccount(1, account), .session(7, rank: 0, .draft()), .quarantine(7, "for a test"), .session(3, rank: 0, .draft()),
        ])
        var scheduler = try await store.load(.memory).0
        let transaction = try scheduler.perform(.enqueue([.draft()]))
        var keys: [SessionKey] = []
        for case .insertSessions(let sessions) in transaction.writes { sessions.forEach { row, _ in keys.append(row.entry.key) } }
        #expect(keys == [8])
        await store.close()
    }

    @Test func quarantineKeepsAllRows() async throws {
        let store = try await preparedStore()
        #expect(try await store.commitIdentifyingFailure([.quarantine(1, "for a test")]).hasDeferredWork)
        #expect(try await store.load(.memory).0.sessions.map(\.key) == [2])
        // The session's run saves another checkpoint before the run ends. The quarantine must also keep this checkpoint.
        try await store.commit([.holdDiscard(1, position: 5, Checkpoint(data: Data("late".utf8), confirmed: 9), account.endpoints[0])])
        while try await store.sweep() {}
        #expect(try await store.dueDiscards(at: .distantFuture, limit: 9).due.isEmpty, "the partial uploads on the server are kept")
        let row = try #require(try await store.quarantined().first)
        #expect(row.content.contains("schedule.id"))
        var quarantinedRows: [QuarantinedRow] = []
        while true {
            let page = try await store.quarantinedRows(of: row.number, after: quarantinedRows.last?.number ?? 0, limit: 4_000)
            guard !page.isEmpty else { break }
            quarantinedRows += page
        }
        #expect(quarantinedRows.count { $0.origin == "file" } == count)
        let uploads = quarantinedRows.filter { $0.origin == "checkpoint" }.map(\.content)
        #expect(uploads.count == 3)
        for name in ["upload 3", "upload \(count - 1)", "late"] {
            let digits = name.utf8.map { String(format: "%02x", $0) }.joined()
            #expect(uploads.contains { $0.contains(digits) }, "\(name)")
        }
        #expect(quarantinedRows.contains { $0.origin == "session_tag" && $0.content.contains("large") })
        #expect(try await rowCount(store, "file") == 1)
        #expect(try await rowCount(store, "checkpoint") == 0)
        #expect(try await rowCount(store, "session") == 1)
        await store.close()
    }

    @Test func keepsCheckpointsOfFileTogether() async throws {
        let store = try await open()
        let endpoints = (0..<10).map { Endpoint(transport: "memory", address: "memory://\($0)/") }
        let identity = SourceIdentity(size: 1, modificationTime: 0, inode: 0, device: 0, bootID: "")
        var many = SessionDraft.draft()
        many.items = (0..<count).map { ItemDraft(source: Data("/f\($0)".utf8), destination: Data("\($0)".utf8), size: 1) }
        try await store.commit(
            [.saveAccount(1, account), .session(1, rank: 0, many)]
                + endpoints.map {
                    .file(1, position: 0, .checkpoint(Checkpoint(data: Data(), confirmed: 1), endpoint: $0, generation: 1, identity))
                })
        try await store.commit([.quarantine(1, "for a test")])
        // Creates checkpoints as if a killed process had left them behind.
        try await store.pool.write { db in
            for endpoint in endpoints {
                try db.execute(
                    sql: "INSERT INTO checkpoint VALUES (1, ?, ?, 1, x'', 1, '{}', NULL)", arguments: [self.count - 1, endpoint.address])
            }
        }
        while try await store.sweep(3) { if try await rowCount(store, "checkpoint") == 0 { break } }
        while try await store.sweep() {}
        let quarantinedRows = try await store.quarantinedRows(of: 1, after: 0, limit: 100_000)
        #expect(quarantinedRows.count { $0.origin == "checkpoint" } == 20)
        await store.close()
    }
}

/// Counts the rows that each transaction of a database changes.
private final class ChangeCounter: TransactionObserver, Sendable {
    private let state = Locked((before: 0, maximum: 0))

    var maximum: Int { state.withLock { $0.maximum } }

    func observe(_ store: QueueStore) async throws {
        let before = try await store.pool.write { $0.totalChangesCount }
        state.withLock { $0.before = before }
        store.pool.add(transactionObserver: self, extent: .databaseLifetime)
    }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseDidRollback(_ db: Database) {}

    func databaseDidCommit(_ db: Database) {
        let total = db.totalChangesCount
        state.withLock { $0 = (total, max($0.maximum, total - $0.before)) }
    }
}
