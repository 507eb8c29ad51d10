import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RetentionTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private func open(_ retention: Retention) async throws -> TransferQueue {
        let queue = try await fixture.open(retention: retention)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        return queue
    }

    /// Opens a queue that keeps completed sessions for an hour, and uploads one file.
    private func openAndUpload(_ name: String) async throws -> TransferQueue {
        let queue = try await open(.age(.seconds(3_600)))
        try await queue.enqueue(try fixture.upload(name))
        try await queue.start()
        await queue.waitUntilIdle()
        return queue
    }

    private func names(_ queue: TransferQueue) async throws -> [String] {
        try await queue.sessions().map(\.name)
    }

    private func rowCount(_ table: String) throws -> Int? {
        try StoreInspection(fixture.folder.path.appending("store")).count(table)
    }

    @Test func keepsLastSessions() async throws {
        var queue = try await open(.count(2))
        for name in ["1", "2", "3", "4"] { try await queue.enqueue(try fixture.upload(name)) }
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await names(queue) == ["3", "4"])
        await queue.shutdown()
        queue = try await open(.count(1))
        await queue.deferredDeletion.waitUntilDone()
        #expect(try await names(queue) == ["4"])
        #expect(try rowCount("file") == 1 && rowCount("session") == 1 && rowCount("schedule") == 1)
        await queue.shutdown()
    }

    @Test func keepsFailedAndCancelledSessions() async throws {
        let queue = try await open(.count(0))
        fixture.memory.failNext(with: TransferError(.permanent, .invalidResponse, "No."), for: "1")
        let failed = try await queue.enqueue(try fixture.upload("1"))
        let cancelled = try await queue.enqueue(try fixture.upload("2"))
        try await queue.enqueue(try fixture.upload("3"))
        try await queue.cancel(cancelled.id, discarding: true)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(await queue.sessionIDs() == [failed.id, cancelled.id])
        await queue.shutdown()
    }

    @Test func removesOldSessions() async throws {
        let queue = try await open(.age(.seconds(3_600)))
        try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await queue.waitUntilIdle()
        fixture.clock.advance(by: .seconds(3_599))
        try await queue.enqueue(try fixture.upload("2"))
        await queue.waitUntilIdle()
        #expect(try await names(queue) == ["1", "2"])
        fixture.clock.advance(by: .seconds(2))
        for await event in queue.events { if case .removed = event.kind { break } }
        #expect(try await names(queue) == ["2"])
        await queue.shutdown()
    }

    /// A machine whose clock has no battery boots decades in the past or in the future, and gets the correct date later.
    @Test(arguments: [-50.0, 50.0]) func wrongDateRemovesNoSession(_ years: Double) async throws {
        let year = 365.0 * 24 * 3_600
        fixture.clock.setDate(by: 60 * year)
        var queue = try await openAndUpload("before")
        await queue.shutdown()

        fixture.clock.setDate(by: years * year)
        queue = try await openAndUpload("wrong")
        #expect(try await names(queue) == ["before", "wrong"])
        fixture.clock.setDate(by: -years * year)
        try await queue.enqueue(try fixture.upload("right"))
        await queue.waitUntilIdle()
        #expect(try await names(queue) == ["before", "wrong", "right"])
        await queue.shutdown()

        queue = try await open(.age(.seconds(3_600)))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await names(queue) == ["before", "wrong", "right"])
        fixture.clock.advance(by: .seconds(3_601))
        for await event in queue.events { if case .removed = event.kind { break } }
        #expect(try await names(queue).isEmpty)
        await queue.shutdown()
    }

    /// A completed session may be removed before a session that depends on it can start.
    @Test func startsDependentsOfRemovedSessions() async throws {
        let queue = try await open(.count(0))
        let first = try await queue.enqueue(try fixture.upload("1"))
        var request = try fixture.upload("2")
        request.dependency = .after(first.id)
        let second = try await queue.enqueue([request], held: true)[0]
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(await queue.sessionIDs() == [second.id])
        try await queue.release(second.id)
        await queue.waitUntilIdle()
        #expect(await queue.sessionIDs() == [])
        #expect(fixture.memory.contents(of: "2") != nil)
        await queue.shutdown()
    }

    /// A virtual machine's clock runs years ahead while the queue is opened twice. The clock is then corrected.
    @Test(arguments: [1.0, 5.0, 9.0]) func fastClockRemovesNoSession(_ years: Double) async throws {
        let year = 365.0 * 24 * 3_600
        fixture.clock.setDate(by: 50 * year)
        var queue = try await openAndUpload("before")
        await queue.shutdown()

        fixture.clock.setDate(by: years * year)
        for name in ["ahead", "again"] {
            queue = try await openAndUpload(name)
            fixture.clock.advance(by: .seconds(60))
            await queue.shutdown()
        }
        fixture.clock.setDate(by: -years * year)
        queue = try await open(.age(.seconds(3_600)))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await names(queue) == ["before", "ahead", "again"])
        // Only the elapsed time counts for a session's age, not the date.
        fixture.clock.advance(by: .seconds(3_601 - 120))
        for await event in queue.events { if case .removed = event.kind { break } }
        #expect(try await names(queue) == ["again"])
        await queue.shutdown()
    }

    @Test func storesRetention() async throws {
        var queue = try await open(.keepAll)
        for name in ["1", "2", "3"] { try await queue.enqueue(try fixture.upload(name)) }
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(await queue.status().retention == .keepAll)
        for retention in [.count(-1), .age(.seconds(-1)), .age(.seconds(3_155_760_001))] as [Retention] {
            let error = await #expect(throws: QueueError.self) { try await queue.setRetention(retention) }
            #expect(error?.code == .invalidRequest)
        }
        try await queue.setRetention(.count(2))
        #expect(try await names(queue) == ["2", "3"])
        await queue.shutdown()

        queue = try await open(.age(.seconds(1)))
        #expect(await queue.status().retention == .count(2))
        #expect(try await names(queue) == ["2", "3"])
        try await queue.setRetention(.age(.seconds(60)))
        fixture.clock.advance(by: .seconds(59))
        #expect(try await names(queue) == ["2", "3"])
        fixture.clock.advance(by: .seconds(2))
        for await event in queue.events { if case .removed = event.kind { break } }
        await queue.shutdown()

        queue = try await open(.count(0))
        #expect(await queue.status().retention == .age(.seconds(60)))
        try await queue.setRetention(.keepAll)
        try await queue.enqueue(try fixture.upload("4"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await names(queue) == ["4"])
        try await queue.setRetention(nil)
        #expect(await queue.status().retention == .count(0))
        #expect(try await names(queue) == [])
        await queue.shutdown()
    }

    @Test func countsTimeBetweenProcesses() async throws {
        var queue = try await openAndUpload("1")
        await queue.shutdown()
        fixture.clock.advance(by: .seconds(24 * 3_600))
        queue = try await open(.age(.seconds(3_600)))
        #expect(try await names(queue).isEmpty)
        await queue.shutdown()
    }
}
