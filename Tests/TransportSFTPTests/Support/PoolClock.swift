import Locking
import TransportSFTP

/// A clock for a connection pool. It runs like the system's clock, but tests can advance it.
final class PoolClock: Sendable {
    private struct Sleeper {
        let number: Int
        let duration: Duration
        /// The sleep ends when ``State/ahead`` reaches this value.
        let end: Duration
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        /// The time by which this clock is ahead of the system's clock.
        var ahead = Duration.zero
        var lastNumber = 0
        var sleepers: [Sleeper] = []
    }

    private let state = Locked(State())

    /// The default policy with this clock.
    var policy: PoolPolicy {
        var policy = PoolPolicy()
        policy.now = { .now + self.state.withLock { $0.ahead } }
        policy.sleep = { try await self.sleep($0) }
        return policy
    }

    func advance(by duration: Duration) {
        let awake = state.withLock { state in
            state.ahead += duration
            let ahead = state.ahead
            defer { state.sleepers.removeAll { $0.end <= ahead } }
            return state.sleepers.filter { $0.end <= ahead }
        }
        for sleeper in awake { sleeper.continuation.resume() }
    }

    func sleepers(for duration: Duration) -> Int {
        state.withLock { $0.sleepers.count { $0.duration == duration } }
    }

    /// Waits until a sleep with the given duration has begun.
    func waitForSleeper(for duration: Duration) async {
        while sleepers(for: duration) == 0 { await Task.yield() }
    }

    private func sleep(_ duration: Duration) async throws {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    // An earlier cancellation is visible here. A later cancellation finds the sleeper.
                    if Task.isCancelled { return true }
                    state.sleepers.append(
                        Sleeper(number: number, duration: duration, end: state.ahead + duration, continuation: continuation))
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                let index = state.sleepers.firstIndex { $0.number == number }
                return index.map { state.sleepers.remove(at: $0) }
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
