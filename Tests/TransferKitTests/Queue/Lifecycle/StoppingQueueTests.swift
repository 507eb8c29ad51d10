import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StoppingQueueTests {
    private let fixture: QueueFixture
    private let queue: TransferQueue

    init() async throws {
        fixture = try QueueFixture()
        queue = try await fixture.openWithAccounts()
    }

    private func startWithOneRunningSession() async throws -> MemoryGate {
        let gate = fixture.memory.gate("1", atByte: 4_000)
        try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        try await gate.reached()
        return gate
    }

    @Test func drainInterruptsAtDeadline() async throws {
        let gate = try await startWithOneRunningSession()
        let stop = Task { try await queue.stopAndWait(.drain, deadline: .seconds(7)) }
        await fixture.clock.waitForSleep(of: .seconds(7))
        fixture.clock.advance(by: .seconds(7))
        #expect(try await stop.value == .interrupted)
        #expect(try await queue.sessions()[0].state == .waiting)
        gate.open()
        await queue.shutdown()
    }

    @Test func drainWaitsForRuns() async throws {
        let gate = try await startWithOneRunningSession()
        let stop = Task { try await queue.stopAndWait(.drain, deadline: .seconds(7)) }
        await fixture.clock.waitForSleep(of: .seconds(7))
        gate.open()
        #expect(try await stop.value == .drained)
        #expect(try await queue.sessions()[0].state == .completed)
        await queue.shutdown()
    }

    @Test func stopWithoutRunsReportsDrained() async throws {
        try await queue.start()
        #expect(try await queue.stopAndWait() == .drained)
        let gate = try await startWithOneRunningSession()
        #expect(try await queue.stopAndWait() == .interrupted)
        gate.open()
        #expect(try await queue.stopAndWait() == .drained, "the queue has already stopped")
        await queue.shutdown()
    }

    @Test func startCancelsDrain() async throws {
        let gate = try await startWithOneRunningSession()
        let stop = Task { try await queue.stopAndWait(.drain, deadline: .seconds(7)) }
        await fixture.clock.waitForSleep(of: .seconds(7))
        try await queue.start()
        #expect(try await stop.value == .restarted)
        gate.open()
        await queue.shutdown()
    }
}
