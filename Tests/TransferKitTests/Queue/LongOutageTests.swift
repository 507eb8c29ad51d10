import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// A server that is down for longer than a file has attempts.
@Suite struct LongOutageTests {
    private let fixture: QueueFixture
    /// The first delay is longer than a slot is kept, so that nothing runs between two attempts.
    private let options = SessionOptions(retry: RetryPolicy(base: .seconds(2)))

    init() throws {
        fixture = try QueueFixture()
    }

    private var now: Duration { fixture.clock.engineClock.now() }

    /// Lets time pass, from one moment at which something is due to the next, until nothing is due any more.
    private func pass(until end: Duration, _ queue: TransferQueue) async {
        while now < end {
            await queue.waitUntilIdle(scheduled: false)
            guard let due = await queue.status().nextDue else { return }
            let wait = Duration.seconds(due.timeIntervalSince(fixture.clock.engineClock.date()))
            fixture.clock.advance(by: min(max(wait, .milliseconds(1)), end - now))
        }
        await queue.waitUntilIdle(scheduled: false)
    }

    private func open(sessions: Int, options: SessionOptions? = nil) async throws -> TransferQueue {
        let queue = try await fixture.openWithAccounts()
        for number in 0..<sessions { try await queue.enqueue(try fixture.upload("\(number)", options: options ?? self.options)) }
        fixture.memory.refuse(host: "a")
        try await queue.start()
        return queue
    }

    @Test func tenHoursUseUpNoSession() async throws {
        let queue = try await open(sessions: 3)
        await pass(until: .seconds(36_000), queue)
        #expect(try await queue.sessions().map(\.state) == [.waiting, .waiting, .waiting])
        fixture.memory.accept(host: "a")
        await pass(until: now + .seconds(15), queue)
        #expect(try await queue.sessions().map(\.state) == [.completed, .completed, .completed])
        await queue.shutdown()
    }

    @Test func allBeginWithinFifteenSecondsOfTheReturn() async throws {
        let queue = try await open(sessions: 8)
        try await queue.setSessionLimit(3)
        await pass(until: .seconds(1_800), queue)
        fixture.memory.accept(host: "a")
        let begun = fixture.memory.attempts.count
        await pass(until: now + .seconds(15), queue)
        #expect(try await queue.sessions().allSatisfy { $0.state == .completed })
        #expect(fixture.memory.attempts.count == begun + 8)
        await queue.shutdown()
    }
}
