import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct ChangeLogTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private func database() throws -> DatabaseQueue {
        try DatabaseQueue(path: fixture.folder.path.appending("store").appending("queue.sqlite").string)
    }

    private func openStore() async throws -> QueueStore {
        try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
    }

    private func loggedEvents(_ store: QueueStore, _ range: ClosedRange<UInt64>) async throws -> [QueueEvent] {
        var events: [QueueEvent] = []
        while (events.last?.revision ?? range.lowerBound - 1) < range.upperBound {
            events += try await store.events(in: (events.last?.revision ?? range.lowerBound - 1) + 1...range.upperBound)
        }
        return events
    }

    @Test func logReturnsEarlierLiveEventsAfterReopening() async throws {
        var queue = try await fixture.openWithAccounts()
        let live = queue.events
        _ = try await queue.enqueue(try fixture.upload("1", "2"))
        try await queue.start()
        await queue.waitUntilIdle()
        await queue.shutdown()
        let first = await live.collect().filter { $0.kind.name != "progress" }
        #expect(first.map(\.revision) == Array(1...UInt64(first.count)))

        queue = try await fixture.open()
        #expect(queue.revision == UInt64(first.count))
        let events = queue.events(since: 3)
        try await queue.start()
        let seen = await events.collect(first.count - 3 + 1)
        #expect(seen.map(\.kind) == first.dropFirst(3).map(\.kind) + [.queueStarted])
        #expect(seen.map(\.revision) == Array(4...UInt64(first.count) + 1))
        // Times are stored in milliseconds.
        #expect(zip(seen, first.dropFirst(3)).allSatisfy { abs($0.time.timeIntervalSince($1.time)) < 0.001 })
        await queue.shutdown()
    }

    @Test func deliversEachEventOnceAcrossSwitchToLiveEvents() async throws {
        let queue = try await fixture.openWithAccounts()
        let file = try fixture.folder.file("1", size: 10)
        let writer = Task {
            for _ in 0..<100 {
                let requests = try (1...4).map { _ in try SessionRequest.upload([file], to: "a") }
                let sessions = try await queue.enqueue(requests)
                try await queue.apply(.remove(), to: .sessions(sessions.map(\.id)))
            }
        }
        var readers: [Task<[UInt64], Never>] = []
        for _ in 0..<20 {
            readers.append(Task { [events = queue.events(since: 0)] in await events.collect(600).map(\.revision) })
            _ = await queue.status()
        }
        try await writer.value
        for reader in readers { #expect(await reader.value == Array(1...600)) }
        await queue.shutdown()
    }

    @Test func servesSlowReaderFromLog() async throws {
        let store = try await openStore()
        let hub = EventHub(capacity: 8)
        let events = hub.subscribe(after: 0, in: store, ClientReads(limit: 1))
        for _ in 0..<200 {
            let numbered = hub.number((0..<5).flatMap { _ in [.queueStarted, .queueStopped] }, at: .now)
            try await store.commit([.events(numbered, keeping: 10_000)])
            hub.publish(numbered)
        }
        hub.finish()
        #expect(await events.collect().map(\.revision) == Array(1...2_000))
        await store.close()
    }

    @Test func limitsNumberOfEventsAndReportsGap() async throws {
        let queue = try await fixture.open(changeLogLimit: 50)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        for _ in 0..<100 { try await queue.enqueue(try fixture.upload("1", size: 10)) }
        #expect(queue.revision == 300)
        let stored = try await database().read { db in
            try (Int.fetchOne(db, sql: "SELECT count(*) FROM event") ?? 0, Int.fetchOne(db, sql: "SELECT min(revision) FROM event") ?? 0)
        }
        #expect((50...56).contains(stored.0))
        var events = queue.events(since: 20).makeAsyncIterator()
        #expect(await events.next()?.kind == .gap(from: 21, to: UInt64(stored.1) - 1))
        // The remaining log starts with a complete change of the order.
        let next = await events.next()
        #expect(next?.revision == UInt64(stored.1) && next?.kind.name == "willChangeQueue")
        await queue.shutdown()
    }

    @Test func reportsGapToReaderWithFutureRevision() async throws {
        let queue = try await fixture.open()
        try await queue.start()
        let next = queue.revision + 1
        let events = queue.events(since: 1_000)
        try await queue.stop()
        #expect(await events.collect(2).map(\.kind) == [.gap(from: next, to: 1_000), .queueStopped])
        await queue.shutdown()
    }

    @Test func omitsChangesThatWereNotStored() async throws {
        let queue = try await fixture.openWithAccounts()
        let events = queue.events
        let database = try database()
        try await database.write {
            try $0.execute(sql: "CREATE TRIGGER refuse BEFORE INSERT ON session BEGIN SELECT raise(ABORT, 'full'); END")
        }
        let refusal = await #expect(throws: QueueError.self) { try await queue.enqueue(try fixture.upload("1")) }
        #expect(refusal?.code == .storageUnavailable)
        #expect(await queue.sessionIDs().isEmpty)
        try await database.write { try $0.execute(sql: "DROP TRIGGER refuse") }
        try await queue.start()
        await queue.shutdown()
        let seen = await events.collect().filter { $0.kind.name != "storageFailed" }
        #expect(seen.first.map { QueueEvent(revision: 1, time: $0.time, kind: .queueStarted) } == seen.first)
    }

    @Test func reportsUnknownEventsAsGap() async throws {
        let store = try await openStore()
        let id = SessionID()
        let kinds: [QueueEvent.Kind] = [
            .queueStarted, .willActivate(id), .didActivate(id), .willChangeQueue(orderRevision: 1), .moved(id, from: 0, to: 1),
            .didChangeQueue(orderRevision: 1), .failed(id, EventCodingTests.error), .queueStopped,
        ]
        try await store.commit([.events(EventHub().number(kinds, at: .now), keeping: 100)])
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE event SET kind = 'levitated' WHERE revision IN (2, 5)")
            try db.execute(sql: "UPDATE event SET detail = '{\"error\":7}' WHERE revision = 7")
        }
        #expect(
            try await loggedEvents(store, 1...8).map(\.kind) == [
                .queueStarted, .gap(from: 2, to: 2), .didActivate(id), .gap(from: 4, to: 7), .queueStopped,
            ])
        await store.close()
    }

    @Test func storesHugeRemovalAsGap() async throws {
        let store = try await openStore()
        let hub = EventHub()
        let ids = (0..<100_000).map { _ in SessionID() }
        let added = [.willChangeQueue(orderRevision: 1), .added(ids, index: 7), .didChangeQueue(orderRevision: 1)] as [QueueEvent.Kind]
        let removed: [QueueEvent.Kind] = [
            .willChangeQueue(orderRevision: 2), .removed(ids + [SessionID()], indices: Array(0...100_000)),
            .didChangeQueue(orderRevision: 2),
        ]
        try await store.commit([.events(hub.number(added + removed + [.queueStopped], at: .now), keeping: 100)])
        let sizes = try await store.pool.read { db in
            try Int.fetchAll(db, sql: "SELECT length(kind) + ifnull(length(sessions), 0) + ifnull(length(detail), 0) FROM event")
        }
        #expect(sizes[1] == 1_600_005 && sizes[4] < 20)
        #expect(try await loggedEvents(store, 1...7).map(\.kind) == added + [.gap(from: 4, to: 6), .queueStopped])
        await store.close()
    }

    @Test func limitsSizeOfLog() async throws {
        let store = try await openStore()
        let ids = (0..<100_000).map { _ in SessionID() }
        for revision in 1...60 {
            try await store.commit([.events([QueueEvent(revision: UInt64(revision), time: .now, kind: .cancelled(ids))], keeping: 100_000)])
        }
        let bytes = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT sum(length(sessions)) FROM event") ?? 0 }
        #expect((60 << 20...71 << 20).contains(bytes))
        #expect(try await store.lastRevision() == 60)
        await store.close()
    }

    @Test func doesNotStoreProgress() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("1", atByte: 5_000)
        let session = try await queue.enqueue(try fixture.upload("1"))
        let events = queue.events
        try await queue.start()
        try await gate.reached()
        await fixture.clock.waitForSleep(of: .milliseconds(100))
        fixture.clock.advance(by: .milliseconds(100))
        #expect(await events.first { if case .progress = $0 { true } else { nil } } == true)
        gate.open()
        _ = try await session.value
        await queue.shutdown()
        let store = try await openStore()
        let count = try await store.lastRevision()
        #expect(try await loggedEvents(store, 1...count).allSatisfy { $0.kind.name != "progress" && $0.kind.name != "gap" })
        await store.close()
    }
}
