import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct LongOutageTests {
    private let fixture: QueueFixture
    /// The first delay is longer than a session keeps its slot, so no run is active between two attempts.
    private let options = SessionOptions(retry: RetryPolicy(base: .seconds(2)))

    init() throws {
        fixture = try QueueFixture()
    }

    private var now: Duration { fixture.clock.engineClock.now() }

    /// Advances the clock from one due time to the next, until `end` or until nothing is due.
    private func advance(until end: Duration, _ queue: TransferQueue) async {
        while now < end {
            await queue.waitUntilIdle(scheduled: false)
            guard let due = await queue.status().nextDue else { return }
            let wait = Duration.seconds(due.timeIntervalSince(fixture.clock.engineClock.date()))
            fixture.clock.advance(by: min(max(wait, .milliseconds(1)), end - now))
        }
        await queue.waitUntilIdle(scheduled: false)
    }

    /// The errors of attempts during an outage, in this order:
    /// - No process is listening (nil).
    /// - A proxy responds for a stopped server, or a forwarder closes connections after an HTTP request.
    /// - A server accepts connections, but never responds.
    /// - A forwarder closes connections during the handshake.
    static let outages: [TransferError?] = [
        nil, TransferError(.transient, .serverUnavailable, "502"), TransferError(.unreachable, .stalled, "Nothing moved."),
        TransferError(.unreachable, .connectionLost, "Closed without a byte."),
    ]

    private func open(sessions: Int, failing error: TransferError? = nil, options: SessionOptions? = nil) async throws -> TransferQueue {
        let queue = try await fixture.openWithAccounts()
        for number in 0..<sessions { try await queue.enqueue(try fixture.upload("\(number)", options: options ?? self.options)) }
        fixture.memory.refuse(host: "a", with: error)
        try await queue.start()
        return queue
    }

    @Test(arguments: outages) func outageOfTenHoursFailsNoSession(_ error: TransferError?) async throws {
        let queue = try await open(sessions: 3, failing: error)
        await advance(until: .seconds(36_000), queue)
        #expect(try await queue.sessions().map(\.state) == [.waiting, .waiting, .waiting])
        fixture.memory.accept(host: "a")
        await advance(until: now + .seconds(15), queue)
        #expect(try await queue.sessions().map(\.state) == [.completed, .completed, .completed])
        await queue.shutdown()
    }

    @Test(arguments: outages) func allSessionsStartWithinFifteenSecondsAfterOutage(_ error: TransferError?) async throws {
        let queue = try await open(sessions: 8, failing: error)
        try await queue.setMaxConcurrentSessions(3)
        await advance(until: .seconds(1_800), queue)
        fixture.memory.accept(host: "a")
        let attemptsBefore = fixture.memory.attempts.count
        await advance(until: now + .seconds(15), queue)
        #expect(try await queue.sessions().allSatisfy { $0.state == .completed })
        #expect(fixture.memory.attempts.count == attemptsBefore + 8)
        await queue.shutdown()
    }

    @Test func sessionOfCorrectedAccountStartsWithoutDelay() async throws {
        let queue = try await open(sessions: 1)
        await advance(until: .seconds(600), queue)
        #expect(try await queue.sessions().map(\.state) == [.waiting])
        let before = now
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "other")]))
        await queue.waitUntilIdle(scheduled: false)
        #expect(try await queue.sessions().map(\.state) == [.completed] && now == before)
        await queue.shutdown()
    }

    private let unavailable = TransferError(.transient, .serverUnavailable, "503")

    @Test func failsOnlyRefusedFile() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.failNext(10_000, with: unavailable, for: "bad")
        let bad = try await queue.enqueue(try fixture.upload("bad", options: options))
        try await queue.start()
        for number in 1...12 {
            try await queue.enqueue(try fixture.upload("\(number)", options: options))
            await advance(until: .seconds(400 * number), queue)
        }
        let (states, why) = (try await queue.sessions().map(\.state), try await bad.status.why)
        #expect(
            states == [.failed] + Array(repeating: .completed, count: 12),
            "\(fixture.memory.attempts.count) attempts, \(String(describing: why))")
        await queue.shutdown()
    }

    /// A refused file may fail only while the server serves other files. Earlier responses to other files are no evidence that the server still
    /// works.
    @Test func singleFileWaitsForServer() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.failNext(10_000, with: unavailable, for: "bad")
        for name in ["bad", "1", "2"] { try await queue.enqueue(try fixture.upload(name, options: options)) }
        try await queue.start()
        await advance(until: .seconds(36_000), queue)
        let states = try await queue.sessions().map(\.state)
        #expect(states == [.waiting, .completed, .completed], "\(fixture.memory.attempts.count) attempts")
        await queue.shutdown()
    }

    /// The server requests a delay that is longer than the interval between probes.
    @Test func respectsDelayOfServerInOutage() async throws {
        let busy = TransferError(.transient, .serverUnavailable, "503", retryAfter: .seconds(120))
        let queue = try await open(sessions: 3, failing: busy)
        await advance(until: .seconds(3_600), queue)
        #expect(try await queue.sessions().map(\.state) == [.waiting, .waiting, .waiting])
        // For each of the three sessions: one attempt at the start, and one after each of the 30 delays of 120 s.
        #expect(fixture.memory.attempts.count <= 31 * 3)
        await queue.shutdown()
    }
}
