import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Runs of removed sessions that have not ended yet.
@Suite struct LeftoverRunTests {
    @Test func queueIsNotIdleDuringRun() async throws {
        let fixture = try QueueFixture()
        let stubborn = UninterruptibleTransport()
        let queue = try await fixture.open(transports: [stubborn])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(try fixture.upload("1"))
        var later = try fixture.upload("2")
        later.notBefore = Date(timeIntervalSince1970: 2_000_000)
        try await queue.enqueue(later)
        try await queue.start()
        await stubborn.begun()
        try await queue.remove(session.id)
        #expect(await queue.status().running == 0)
        #expect(await queue.hasLiveRuns)
        let atRest = Task {
            await queue.waitUntilIdle(scheduled: false)
            return await !queue.hasLiveRuns
        }
        let cancelled = Task { await queue.waitUntilIdle(scheduled: false) }
        // Gives a call that wrongly does not wait enough time to return.
        for _ in 0..<50 { _ = await queue.status() }
        cancelled.cancel()
        await cancelled.value
        #expect(await queue.hasLiveRuns)
        stubborn.finish()
        #expect(await atRest.value)
        await queue.shutdown()
    }
}
