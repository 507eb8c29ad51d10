import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RetryTests {
    @Test func retriesOnlyFailedSessions() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        for name in ["2", "4"] { fixture.memory.failNext(with: TransferError(.permanent, .invalidResponse, "No."), for: name) }
        let partlyFailed = try await queue.enqueue(try fixture.upload("1", "2", "3"))
        let entirelyFailed = try await queue.enqueue(try fixture.upload("4", to: "b"))
        let completed = try await queue.enqueue(try fixture.upload("5"))
        let cancelled = try await queue.enqueue(try fixture.upload("6"))
        try await queue.cancel(cancelled.id, discarding: true)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.state) == [.failed, .failed, .completed, .cancelled])

        let attemptsBefore = fixture.memory.attempts.count
        #expect(try await queue.apply(.retry, to: .failed) == [partlyFailed.id, entirelyFailed.id])
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.state) == [.completed, .completed, .completed, .cancelled])
        #expect(fixture.memory.attempts.count == attemptsBefore + 2, "only the failed files are retried")
        #expect(await queue.sessionIDs() == [partlyFailed.id, entirelyFailed.id, completed.id, cancelled.id])
        #expect(try await queue.apply(.retry, to: .failed) == [])
        await queue.shutdown()
    }
}
