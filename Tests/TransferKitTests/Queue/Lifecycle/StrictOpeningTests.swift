import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StrictOpeningTests {
    /// After an orderly shutdown, only a checkpoint shows that a session had started.
    @Test func continuesSessionWithCheckpointWhileFirstWaitsForSpace() async throws {
        let fixture = try QueueFixture()
        var queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("2", atByte: 4_000)
        let startedSession = try await queue.enqueue(try fixture.upload("2")).id
        try await queue.start()
        try await gate.reached()
        await queue.shutdown()
        gate.open()

        queue = try await fixture.open(ordering: .strict)
        let first = try await queue.enqueue(try fixture.upload("1"), at: 0)
        let last = try await queue.enqueue(try fixture.upload("3"))
        fixture.memory.failNext(with: TransferError(.noSpace, .diskFull, "Full."))
        try await queue.start()
        while try await first.status.error == nil { await Task.yield() }
        try #require(try await queue.status(of: startedSession).state != .waiting)
        #expect(try await last.status.why == .strictOrder(after: first.id))
        #expect(try await queue.session(startedSession).value.state == .completed)
        // The completed session may have released space, so the first session checks the space 5 s after its last check.
        await fixture.clock.waitForSleep(of: .seconds(5))
        fixture.clock.advance(by: .seconds(5))
        #expect(try await last.value.state == .completed)
        await queue.shutdown()
    }

    @Test func rejectsImpossibleOrder() async throws {
        let fixture = try QueueFixture()
        var queue = try await fixture.openWithAccounts()
        let first = try await queue.enqueue(try fixture.upload("1"))
        var request = try fixture.upload("2")
        request.dependency = .after(first.id)
        let second = try await queue.enqueue(request)
        try await queue.move(second.id, to: .front)
        await queue.shutdown()

        let error = await #expect(throws: QueueError.self) { try await fixture.open(ordering: .strict) }
        #expect(error?.code == .impossibleOrder)
        #expect(error?.description.contains("\(second.id)") == true)

        queue = try await fixture.open()
        #expect(await queue.sessionIDs() == [second.id, first.id])
        try await queue.move(second.id, to: .end)
        await queue.shutdown()
        queue = try await fixture.open(ordering: .strict)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.state) == [.completed, .completed])
        await queue.shutdown()
    }
}
