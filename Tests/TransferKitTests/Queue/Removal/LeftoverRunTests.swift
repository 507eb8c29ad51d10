import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct LeftoverRunTests {
    @Test func freesSlotEvenIfDatabaseRejectsEndOfRun() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("1", atByte: 4_000)
        let session = try await queue.enqueue(try fixture.upload("1"))
        let other = try await queue.enqueue(try fixture.upload("2"))
        let database = try DatabaseQueue(path: fixture.folder.path.appending("store").appending("queue.sqlite").string)
        try await database.write {
            try $0.execute(
                sql: """
                    CREATE TRIGGER refusal BEFORE UPDATE ON discard WHEN old.held_by IS NOT NULL
                    BEGIN SELECT raise(ABORT, 'bad row'); END
                    """)
        }
        try database.close()
        try await queue.start()
        try await gate.reached()
        try await queue.remove(session.id)
        gate.open()
        var isDone = false
        for _ in 0..<5_000 where !isDone { isDone = try await other.status.state == .completed }
        try #require(isDone)
        #expect(try await queue.stopAndWait() == .drained)
        await queue.shutdown()
    }

    @Test func queueIsNotIdleDuringRunOfRemovedSession() async throws {
        let fixture = try QueueFixture()
        let stubborn = UninterruptibleTransport()
        let queue = try await fixture.open(transports: [stubborn])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(try fixture.upload("1"))
        var later = try fixture.upload("2")
        later.notBefore = Date(timeIntervalSince1970: 2_000_000)
        try await queue.enqueue(later)
        try await queue.start()
        await stubborn.waitUntilBegun()
        try await queue.remove(session.id)
        #expect(await queue.status().running == 0)
        #expect(await queue.hasLiveRuns)
        let isIdleAfterWait = Task {
            await queue.waitUntilIdle(scheduled: false)
            return await !queue.hasLiveRuns
        }
        let cancelled = Task { await queue.waitUntilIdle(scheduled: false) }
        // If `waitUntilIdle` did not wait for the run, the tasks would end during this time.
        for _ in 0..<50 { _ = await queue.status() }
        cancelled.cancel()
        await cancelled.value
        #expect(await queue.hasLiveRuns)
        stubborn.finish()
        #expect(await isIdleAfterWait.value)
        await queue.shutdown()
    }
}
