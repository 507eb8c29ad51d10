import Locking
import Testing
import TransportSFTP

@Suite(.timeLimit(.minutes(10))) struct RequestWindowTests {
    private final class Clock: Sendable {
        private let time = Locked(ContinuousClock.Instant.now)
        var now: ContinuousClock.Instant { time.withLock { $0 } }
        func advance(by duration: Duration) { time.withLock { $0 += duration } }
    }

    private static let requestSize = 32 << 10

    /// Measures the bytes in flight during a simulated transfer over a path with limited throughput.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes that the path carries in each tenth of a second.
    ///   - seconds: The duration of the transfer.
    /// - Returns: The maximum number of bytes in flight during the last second.
    private func maximumInFlight(_ bytes: Int, for seconds: Int) async throws -> Int {
        let clock = Clock()
        let window = RequestWindow(bytes: 4 << 20, requests: 128, pace: RequestPace { clock.now })
        let sent = Locked(0)
        let sender = Task {
            while true {
                try await window.acquire(bytes: Self.requestSize)
                sent.withLock { $0 += 1 }
            }
        }
        var maximum = 0
        var credit = 0
        for step in 0..<10 * seconds {
            // Sends as much as the window permits.
            var before = -1
            while before != sent.withLock({ $0 }) {
                before = sent.withLock { $0 }
                for _ in 0..<1_000 { await Task.yield() }
            }
            if step >= 10 * (seconds - 1) { maximum = max(maximum, window.inFlight) }
            clock.advance(by: .milliseconds(100))
            credit = min(credit + bytes, window.inFlight)
            while credit >= Self.requestSize {
                credit -= Self.requestSize
                window.release(bytes: Self.requestSize)
            }
        }
        sender.cancel()
        _ = await sender.result
        return maximum
    }

    /// With a full window, a small file on the same connection would wait much longer than a second for each response.
    @Test func doesNotFillSlowPath() async throws {
        #expect(try await maximumInFlight(30_000, for: 4) <= 512 << 10)
    }

    @Test func fillsFastPath() async throws {
        #expect(try await maximumInFlight(2_000_000, for: 4) >= 3 << 20)
    }

    @Test func permitsFullWindowAtStart() async throws {
        let window = RequestWindow(bytes: 4 << 20, requests: 128, pace: RequestPace())
        try await window.acquire(bytes: 4 << 20)
        #expect(window.inFlight == 4 << 20)
    }
}
