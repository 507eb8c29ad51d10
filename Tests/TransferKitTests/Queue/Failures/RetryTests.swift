import Testing
import TransferCore
import TransferKit
import TransportTesting

/// A user retries failed sessions.
@Suite struct RetryTests {
    @Test func retriesOnlyFailedSessions() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        for name in ["2", "4"] { fixture.memory.failNext(with: TransferError(.permanent, .badAnswer, "No."), for: name) }
        let partly = try await queue.enqueue(try fixture.upload("1", "2", "3"))
        let whole = try await queue.enqueue(try fixture.upload("4", to: "b"))
        let completed = try await queue.enqueue(try fixture.upload("5"))
        let cancelled = try await queue.enqueue(try fixture.upload("6"))
        try await queue.cancel(cancelled.id)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.state) == [.failed, .failed, .completed, .cancelled])

        let begun = fixture.memory.attempts.count
        #expect(try await queue.apply(.retry, to: .failed) == [partly.id, whole.id])
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.state) == [.completed, .completed, .completed, .cancelled])
        #expect(fixture.memory.attempts.count == begun + 2, "only failed files")
        #expect(await queue.sessionIDs() == [partly.id, whole.id, completed.id, cancelled.id])
        #expect(try await queue.apply(.retry, to: .failed) == [])
        await queue.shutdown()
    }
}
