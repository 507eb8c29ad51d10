import Foundation
import GRDB
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The work must grow only in proportion to the number of sessions.
@Suite struct LargeGroupTests {
    private static let count = 20_000

    /// The statements that a queue executes, excluding the statements of readers.
    private struct Work: Equatable {
        var statements = 0
        var commits = 0
        /// The number of rows written to the table `schedule`.
        var rows = 0
        /// The maximum of ``rows`` in one transaction.
        var largest = 0
        private var current = 0

        mutating func record(_ step: StoreStep) {
            guard case .after(let sql) = step else { return }
            statements += 1
            if sql.hasPrefix("COMMIT") { (commits, current) = (commits + 1, 0) }
            guard sql.hasPrefix("INSERT INTO schedule") else { return }
            (rows, current) = (rows + 1, current + 1)
            largest = max(largest, current)
        }
    }

    private let fixture: QueueFixture
    private let work = Locked(Work())

    init() throws {
        fixture = try QueueFixture()
    }

    private func open() async throws -> TransferQueue {
        work.withLock { $0 = Work() }
        return try await fixture.open(storeObserver: { [work] step in work.withLock { $0.record(step) } })
    }

    private func storeSessions(_ count: Int) async throws {
        let store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        let drafts = (0..<count).map { _ in SessionDraft.draft() }
        var sessions = NewSessions(drafts: drafts, createdAt: .now)
        for (index, draft) in drafts.enumerated() {
            sessions.append(Entry(id: draft.id, key: Int64(index) + 1, rank: Int64(index), account: 1, state: .waiting))
        }
        try await store.commit([.saveAccount(1, .memory("a")), .insertSessions(sessions)])
        await store.close()
    }

    @Test(arguments: [SessionOperation.runNext, .hold, .cancel()])
    func operationWritesEachSessionOnce(_ operation: SessionOperation) async throws {
        try await storeSessions(Self.count)
        let queue = try await open()
        work.withLock { $0 = Work() }
        #expect(try await queue.apply(operation, to: .all).count == Self.count)
        let result = work.withLock(\.self)
        #expect(result.rows == Self.count && result.largest <= 10_000, "\(result)")
        #expect(result.commits == Self.count / 10_000 && result.statements <= 4 * Self.count + 100, "\(result)")
        await queue.shutdown()
    }

    @Test func openingWithPrioritizedSessionsExecutesFewStatements() async throws {
        var statements: [Int] = []
        for count in [10, Self.count] {
            let test = try LargeGroupTests()
            try await test.storeSessions(count)
            var queue = try await test.open()
            try await queue.apply(.runNext, to: .all)
            let ids = await queue.sessionIDs()
            await queue.shutdown()
            queue = try await test.open()
            #expect(await queue.sessionIDs() == ids)
            statements.append(test.work.withLock(\.statements))
            await queue.shutdown()
        }
        #expect(statements[1] <= statements[0] + 20, "\(statements)")
    }

    @Test(arguments: [QueueOrdering.inOrder, .strict]) func changesMoveFewKeys(_ ordering: QueueOrdering) throws {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"], ordering: ordering))
        _ = try scheduler.perform(.saveAccount(.memory("a")))
        var drafts = (0..<Self.count).map { _ in SessionDraft.draft() }
        while !drafts.isEmpty {
            _ = try scheduler.perform(.enqueue(Array(drafts.prefix(10_000))))
            drafts.removeFirst(10_000)
        }
        for operation in [SessionOperation.runNext, .hold, .release] {
            // Begins with the last session, so that each session gets a position before all other sessions.
            for key in (1...SessionKey(Self.count)).reversed() where key % 8 == 0 {
                guard let id = scheduler.view(key)?.id else { continue }
                _ = try scheduler.perform(.perform(operation, .one(.id(id))))
            }
            #expect(scheduler.sessionIndex.largestBlock <= 1_024, "\(operation)")
        }
        for operation in [SessionOperation.runNext, .hold] {
            _ = try scheduler.perform(.perform(operation, .group(.all)))
            #expect(scheduler.sessionIndex.largestBlock <= 1_024, "\(operation)")
        }
    }
}

/// The sessions of a transaction share the limit for changed rows.
extension LargeGroupTests {
    private static let limit = 1_000
    private static let sessionCount = 5
    private static let filesPerSession = 700
    private static let total = sessionCount * filesPerSession
    /// The number of rows that a transaction may change beyond the limit, for example the rows of the sessions and of the totals.
    private static let tolerance = 100

    private var path: FilePath { fixture.folder.path.appending("store") }

    /// Creates a database with sessions whose files have all failed, or have all completed.
    private func prepareSessions(_ state: SessionState, filesAre fileState: ItemState) async throws {
        let file = try fixture.folder.file("f", size: 1)
        let store = try await QueueStore.open(.folder(path), clock: .system)
        var writes: [StoreWrite] = [.saveAccount(1, Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))]
        for key in 1...SessionKey(Self.sessionCount) {
            var draft = SessionDraft.draft()
            draft.items = (0..<Self.filesPerSession).map {
                ItemDraft(source: Data(file.string.utf8), destination: Data("\(key)-\($0)".utf8), size: 1)
            }
            writes.append(.session(key, rank: key, draft, state))
        }
        try await store.commit(writes)
        let figures = fileState == .completed ? "files_done = files, bytes_done = bytes_total" : "files_failed = files"
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    UPDATE file SET state = '\(fileState.rawValue)';
                    UPDATE session SET \(figures);
                    UPDATE total SET \(figures);
                    UPDATE schedule SET completed_at = 1 WHERE state = 'completed';
                    """)
        }
        await store.close()
    }

    /// Starts a queue, and checks that it sends each file once.
    private func expectTransfer(_ queue: TransferQueue) async throws {
        try await queue.start()
        await queue.waitUntilIdle()
        let sessions = try await queue.sessions()
        #expect(sessions.count == Self.sessionCount && sessions.allSatisfy { $0.state == .completed })
        #expect(sessions.allSatisfy { $0.statistics.filesDone == Self.filesPerSession && $0.statistics.filesFailed == 0 })
        #expect(fixture.memory.completePaths.count == Self.total)
        await queue.deferredDeletion.waitUntilDone()
        await queue.shutdown()
        let store = try StoreInspection(path)
        #expect(try store.count("setting WHERE name GLOB 'reset *'") == 0)
        try store.expectNoContradictions("after the transfer")
    }

    @Test(arguments: [SessionOperation.retry, .run(again: true)])
    func transfersAllFilesOfGroupAgain(_ operation: SessionOperation) async throws {
        let isRetry = operation == .retry
        try await prepareSessions(isRetry ? .failed : .completed, filesAre: isRetry ? .failed : .completed)
        let queue = try await fixture.open(rowsPerSweep: Self.limit)
        let changes = RowChangeCounter()
        try await changes.observe(queue.store)
        #expect(try await queue.apply(operation, to: .all).count == Self.sessionCount)
        #expect(changes.maximum <= Self.limit + Self.tolerance)
        try await expectTransfer(queue)
    }

    @Test(arguments: [ItemState.failed, .completed]) func transfersFilesThatEarlierProcessDidNotReset(_ state: ItemState) async throws {
        try await prepareSessions(.waiting, filesAre: state)
        let store = try await QueueStore.open(.folder(path), clock: .system, rowsPerSweep: Self.limit)
        try await store.commit((1...SessionKey(Self.sessionCount)).map { .resetSession($0, isWhole: state == .completed) })
        let pending = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM file WHERE state = 'pending'") }
        #expect(pending == Self.limit)
        await store.abandon()
        try await expectTransfer(try await fixture.open(rowsPerSweep: Self.limit))
    }

    @Test func cancellationOfGroupMovesCheckpointsInBatches() async throws {
        try await prepareSessions(.waiting, filesAre: .failed)
        let store = try await QueueStore.open(.folder(path), clock: .system)
        let address = fixture.memory.endpoint(host: "a").address
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity)
                        SELECT session, position, ?, generation, x'00', 1, 'null' FROM file
                    """, arguments: [address])
        }
        await store.close()
        let queue = try await fixture.open(rowsPerSweep: Self.limit)
        let changes = RowChangeCounter()
        try await changes.observe(queue.store)
        #expect(try await queue.apply(.cancel(discarding: true), to: .all).count == Self.sessionCount)
        await queue.deferredDeletion.waitUntilDone()
        // To move a checkpoint, the queue deletes a row, adds another row, and gives the file a new generation.
        #expect(changes.maximum <= 3 * Self.limit + Self.tolerance)
        await queue.shutdown()
        let inspection = try StoreInspection(path)
        #expect(try inspection.count("discard") == Self.total)
        #expect(try inspection.count("file WHERE generation = 2") == Self.total, "each file gets a new generation")
        #expect(try inspection.count("setting WHERE name GLOB 'discard *'") == 0)
        try inspection.expectNoContradictions("after the cancellation")
    }
}

/// Counts the rows that each transaction of a database changes.
final class RowChangeCounter: TransactionObserver, Sendable {
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
