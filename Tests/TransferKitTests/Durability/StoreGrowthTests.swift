import Foundation
import GRDB
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct StoreGrowthTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private var storage: FilePath { folder.path.appending("store") }

    private func open() async throws -> QueueStore {
        try await QueueStore.open(.folder(storage), clock: .system)
    }

    private func count(_ store: QueueStore, _ table: String) async throws -> Int {
        try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(table)") ?? -1 }
    }

    private func quarantine(_ keys: ClosedRange<Int64>, files: Int, in store: QueueStore) async throws {
        for key in keys {
            var draft = SessionDraft.draft()
            draft.items = (0..<files).map { ItemDraft(source: Data("/\($0)".utf8), destination: Data("\($0)".utf8), size: 1) }
            try await store.commit([.session(key, rank: key, draft), .quarantine(key, "for a test")])
            while try await store.sweep() {}
        }
    }

    @Test func limitsEventLog() async throws {
        let store = try await open()
        for round in 0..<60 as Range<UInt64> {
            let events = (1...100 as ClosedRange<UInt64>).map { QueueEvent(revision: 100 * round + $0, time: .now, kind: .queueStarted) }
            try await store.commit([.events(events, keeping: 1_000)])
            #expect(try await count(store, "event") <= 1_100 + 1)
        }
        #expect(try await count(store, "event") >= 1_000)
        await store.close()
    }

    @Test func limitsSizeOfEventLog() async throws {
        let store = try await open()
        let reason = String(repeating: "r", count: 4 << 20)
        for revision in 1...40 as ClosedRange<UInt64> {
            try await store.commit([.events([QueueEvent(revision: revision, time: .now, kind: .quarantined(reason))], keeping: 1_000)])
            let weight = try await store.pool.read { try Int64.fetchOne($0, sql: "SELECT sum(length(detail)) FROM event") ?? 0 }
            #expect(weight <= 75 << 20)
        }
        await store.close()
    }

    @Test func removesOldestSessionsFromQuarantine() async throws {
        let store = try await open()
        try await store.commit([.saveAccount(1, .memory("a"))])
        try await quarantine(1...12, files: 3, in: store)
        var limits = StoreLimits()
        limits.quarantined = 5
        while try await store.trim(limits) {}
        #expect(try await store.quarantined().map(\.number) == [8, 9, 10, 11, 12])
        #expect(try await count(store, "quarantined_row") == 15)
        limits.quarantinedSessions = 7
        while try await store.trim(limits) {}
        #expect(try await store.quarantined().map(\.number) == [11, 12])
        limits.quarantinedSessions = 1
        while try await store.trim(limits) {}
        #expect(try await store.quarantined().map(\.number) == [12], "the newest session stays, however large it is")
        await store.close()
    }

    @Test func trimsQuarantine() async throws {
        let fixture = try QueueFixture()
        let store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        try await store.commit([.saveAccount(1, .memory("a"))])
        try await quarantine(1...1, files: 1, in: store)
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE numbers(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1010)
                    INSERT INTO quarantine SELECT n, found_at, reason, content, NULL FROM quarantine, numbers
                    """)
        }
        await store.close()
        let (delegate, log) = (RecordingDelegate(), CountingLog(warnings: Locked(0)))
        var logger = Logger(label: "test") { _ in log }
        logger.logLevel = .error
        let queue = try await fixture.open(delegate: delegate, logger: logger)
        await queue.deferredDeletion.waitUntilDone()
        #expect(try await queue.quarantinedCount() == StoreLimits().quarantined)
        #expect(try await queue.quarantined().first?.number == 11)
        // The queue logs each deleted session, because the session's data may be valuable.
        #expect(log.errors.withLock { $0.count { $0.contains("for a test") } } == 10)
        while await !delegate.kinds.contains(where: { if case .storeTrimmed(let text) = $0 { text.hasPrefix("10 of") } else { false } }) {
            await Task.yield()
        }
        await queue.shutdown()
    }

    @Test func limitsPendingRemovals() async throws {
        let store = try await open()
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 25000)
                    INSERT INTO discard(endpoint, data, confirmed, next_attempt_at, give_up_at, held_by)
                    SELECT CASE WHEN n = 2 THEN '{"transport":"transferkit-parts"}' ELSE '{"transport":"memory"}' END, x'00', 0, 0, 0,
                        CASE WHEN n = 1 THEN 7 END FROM numbers
                    """)
        }
        var limits = StoreLimits()
        limits.discards = 100
        let removals = Locked(0)
        while try await store.trim(limits, { trimmed in removals.withLock { $0 += trimmed.removals } }) {}
        #expect(removals.withLock { $0 } == 25_000 - 102)
        #expect(try await count(store, "discard") == 102, "100 (the limit), plus one local part file and one upload that a run still uses")
        await store.close()
    }

    @Test func shrinksWriteAheadLog() async throws {
        let store = try await open()
        let log = storage.appending("queue.sqlite-wal").string
        func size() throws -> Int { try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int ?? 0 }
        try await store.commit([.saveAccount(1, .memory("a"))])
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 300000)
                    INSERT INTO discard(endpoint, data, confirmed, next_attempt_at, give_up_at)
                    SELECT '{"transport":"memory","address":"memory://somewhere/"}', zeroblob(64), 0, 0, 0 FROM numbers
                    """)
        }
        #expect(try size() > 2 * QueueStore.maximumLogSize)
        for number in 0..<20 as Range<Int64> { try await store.commit([.ran(nil, 0, queue: number + 1)]) }
        #expect(try size() <= QueueStore.maximumLogSize)
        await store.close()
    }

    @Test func removesOrphansFromSpool() async throws {
        var store = try await open()
        let spool = storage.appending("spool")
        try FileManager.default.createDirectory(atPath: spool.string, withIntermediateDirectories: true)
        for name in ["kept", "sent", "orphan"] { try Data("x".utf8).write(to: URL(fileURLWithPath: spool.appending(name).string)) }
        var draft = SessionDraft.draft()
        draft.items = [ItemDraft(kind: .blob, source: Data("kept".utf8), destination: Data("k".utf8), size: 1)]
        try await store.commit([.saveAccount(1, .memory("a")), .session(1, rank: 0, draft), .quarantine(1, "for a test")])
        for number in 0..<500 { try Data("x".utf8).write(to: URL(fileURLWithPath: spool.appending("\(number)").string)) }
        for isSwept in [false, true] {
            await store.close()
            store = try await open()
            #expect(try FileManager.default.contentsOfDirectory(atPath: spool.string) == ["kept"])
            if !isSwept { while try await store.sweep() {} }
        }
        try await store.dropQuarantined(1)
        await store.close()
        store = try await open()
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool.string).isEmpty)
        await store.close()
    }
}
