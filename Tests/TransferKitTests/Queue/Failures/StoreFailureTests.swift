import GRDB
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StoreFailureTests {
    private let fixture: QueueFixture
    private let request: SessionRequest
    private let blocker = Locked<DatabaseQueue?>(nil)

    init() throws {
        fixture = try QueueFixture()
        request = try fixture.upload("1")
    }

    /// Locks the database through another connection, so that all changes by the queue fail; or unlocks the database.
    private func setDatabaseLocked(_ isLocked: Bool) async throws {
        if isLocked {
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            // Waits while the queue is in a transaction.
            configuration.busyMode = .timeout(60)
            let other = try DatabaseQueue(
                path: fixture.folder.path.appending("store").appending("queue.sqlite").string, configuration: configuration)
            try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
            blocker.withLock { $0 = other }
        } else {
            try await blocker.withLock { $0 }?.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
            blocker.withLock { $0 = nil }
        }
    }

    @Test func rejectsUnstorableCommandWithoutEffect() async throws {
        let queue = try await fixture.openWithAccounts()
        let handle = try await queue.enqueue(request)
        try await setDatabaseLocked(true)
        #expect(try await #require(throws: QueueError.self) { try await queue.start() }.code == .storageUnavailable)
        #expect(await queue.status().mode == .stopped)
        #expect(fixture.memory.attempts.isEmpty)
        try await setDatabaseLocked(false)
        try await queue.start()
        #expect(try await handle.value.state == .completed)
        await queue.shutdown()
    }

    @Test func storesChangesDespiteFailingChangeLog() async throws {
        let path = fixture.folder.path.appending("store").appending("queue.sqlite").string
        try await fixture.openWithAccounts().shutdown()
        let database = try DatabaseQueue(path: path)
        try await database.write { db in
            try db.execute(sql: "DELETE FROM setting WHERE name GLOB 'clock*'")
            try db.execute(sql: "CREATE TRIGGER refusal BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'refused'); END")
        }
        try database.close()
        let queue = try await fixture.openWithAccounts()
        let handle = try await queue.enqueue(request)
        try await queue.start()
        #expect(try await handle.value.state == .completed)
        await queue.shutdown()
        let names = try await DatabaseQueue(path: path).read { try String.fetchAll($0, sql: "SELECT name FROM setting ORDER BY name") }
        #expect(names.contains("clockSeen") && names.contains("clockSteady"))
    }

    @Test func storesReportsOnceDatabaseRecovers() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("1", atByte: 10_000)
        let handle = try await queue.enqueue(request)
        let events = queue.events
        try await queue.start()
        try await gate.reached()
        try await setDatabaseLocked(true)
        gate.open()
        let failure = await events.first { if case .storageFailed(let error) = $0 { error } else { nil } }
        #expect(failure?.message.contains("database is locked") == true)
        let status = await queue.status()
        #expect(status.running + status.waiting == 1 && status.completed == 0)
        try await setDatabaseLocked(false)
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await handle.value.statistics.filesDone == 1)
        await queue.waitUntilIdle()
        await queue.shutdown()
    }

    /// Another queue may soon send the files of a withdrawn session, so this queue must stop the run even if the database rejects
    /// the interruption.
    @Test func interruptsWithdrawnSessionImmediately() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("1", atByte: 4_000)
        let handle = try await queue.enqueue(request)
        try await queue.start()
        try await gate.reached()
        try await setDatabaseLocked(true)
        #expect(try await #require(throws: QueueError.self) { try await queue.withdraw(handle.id) }.code == .storageUnavailable)
        gate.open()
        try await setDatabaseLocked(false)
        try await queue.withdraw(handle.id)
        #expect(await queue.sessionIDs().isEmpty)
        #expect(fixture.memory.contents(of: "1") == nil)
        await queue.shutdown()
    }

    @Test func interruptsRunsAfterLongFailure() async throws {
        let queue = try await fixture.openWithAccounts()
        let first = fixture.memory.gate("1", atByte: 10_000)
        let second = fixture.memory.gate("2", atByte: 4_000)
        let handle = try await queue.enqueue(try fixture.upload("1", "2"))
        let events = queue.events
        try await queue.start()
        try await first.reached()
        try await setDatabaseLocked(true)
        first.open()
        try await second.reached()
        // The queue delays the report of a small file by at most 20 ms.
        await fixture.clock.waitForSleep(of: .milliseconds(20))
        fixture.clock.advance(by: .milliseconds(20))
        _ = await events.first { if case .storageFailed(let error) = $0 { error } else { nil } }
        #expect(try await handle.status.state == .running)
        for _ in 0..<10 {
            await fixture.clock.waitForSleep(of: .seconds(1))
            fixture.clock.advance(by: .seconds(1))
        }
        while try await handle.status.state == .running { await Task.yield() }
        let status = try await handle.status
        guard case .storageRefusesChanges(let problem) = status.why else {
            Issue.record("\(status)")
            return
        }
        #expect(status.state == .waiting && problem.contains("database is locked"))
        let all = await queue.status()
        #expect(all.running == 0 && all.waiting == 1)
        try await setDatabaseLocked(false)
        second.open()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await handle.value.statistics.filesDone == 2)
        #expect(fixture.memory.contents(of: "1") == (try fixture.content("1")))
        #expect(fixture.memory.contents(of: "2") == (try fixture.content("2")))
        await queue.shutdown()
    }

    private final class CheckpointlessTransport: Transport {
        let id: TransportID = "memory"
        let begun = Latch()
        let mayContinue = Latch()
        let attempts = Locked(0)

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            attempts.withLock { $0 += 1 }
            begun.open()
            try await mayContinue.wait()
            return TransferReceipt(bytes: try attempt.source.size)
        }

        func shutdown() async {}
    }

    /// If the process were killed, all reports that wait for the database would be lost, and the next process would send these files again.
    @Test func limitsReportsThatWaitForDatabase() async throws {
        let transport = CheckpointlessTransport()
        let changes = Locked((current: 0, largest: 0))
        let queue = try await fixture.open(
            transports: [transport],
            storeObserver: { step in
                guard case .after(let statement) = step else { return }
                changes.withLock {
                    if statement.hasPrefix("COMMIT") || statement.hasPrefix("ROLLBACK") { $0.current = 0 }
                    if statement.hasPrefix("UPDATE file") { $0.current += 1 }
                    $0.largest = max($0.largest, $0.current)
                }
            })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let files = try (0..<3_000).map { try fixture.folder.file("\($0)", size: 1) }
        let handle = try await queue.enqueue(try .upload(files, to: "a", options: SessionOptions(filesInFlight: 1)))
        try await queue.start()
        try await transport.begun.wait()
        try await setDatabaseLocked(true)
        transport.mayContinue.open()
        while try await handle.status.state == .running { await Task.yield() }
        #expect((900...1_200).contains(transport.attempts.withLock { $0 }))
        let status = try await handle.status
        guard case .storageRefusesChanges = status.why else {
            Issue.record("\(status)")
            return
        }
        try await setDatabaseLocked(false)
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await handle.value.statistics.filesDone == 3_000)
        // At most the one file in flight was sent twice.
        #expect(transport.attempts.withLock { $0 } <= 3_001)
        let largest = changes.withLock { $0.largest }
        #expect((900...1_200).contains(largest), "the largest transaction stores \(largest) files")
        await queue.shutdown()
    }

    @Test func performsDueRetryOnceDatabaseRecovers() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.failNext(with: TransferError(.transient, .serverError, "The server is busy.", retryAfter: .seconds(30)))
        let handle = try await queue.enqueue(request)
        let events = queue.events
        try await queue.start()
        await queue.waitUntilIdle(scheduled: false)
        try await setDatabaseLocked(true)
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        _ = await events.first { if case .storageFailed(let error) = $0 { error } else { nil } }
        try await setDatabaseLocked(false)
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await handle.value.state == .completed)
        await queue.shutdown()
    }

    @Test func shutsDownDuringFailure() async throws {
        var queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("1", atByte: 4_000)
        let handle = try await queue.enqueue(request)
        try await queue.start()
        try await gate.reached()
        try await setDatabaseLocked(true)
        await queue.shutdown()
        gate.open()
        try await setDatabaseLocked(false)
        queue = try await fixture.open()
        #expect(try await queue.status(of: handle.id).state == .waiting)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(fixture.memory.attempts.map(\.startOffset) == [0, 4_000])
        await queue.shutdown()
    }
}
