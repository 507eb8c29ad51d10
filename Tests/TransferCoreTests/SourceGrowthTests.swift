import Testing
import TransferCore

@Suite struct SourceGrowthTests {
    /// The queue may cancel many attempts for a stream without data. If the waiter of a cancelled attempt were not removed, each attempt
    /// would leak a waiter.
    @Test func removesCancelledWaiters() async throws {
        let growth = SourceGrowth()
        for _ in 0..<10 {
            let task = Task { try await growth.waitUntilReadable(at: 5) }
            while growth.waitingCalls == 0 { await Task.yield() }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(growth.waitingCalls == 0)
        }
        let task = Task { try await growth.waitUntilReadable(at: 5) }
        while growth.waitingCalls == 0 { await Task.yield() }
        growth.update(.growing(6))
        try await task.value
    }
}
