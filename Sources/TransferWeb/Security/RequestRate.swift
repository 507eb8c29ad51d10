import Locking

/// Limits the total number of requests per second from several clients. A burst of requests can exceed this rate for a short time.
final class RequestRate: Sendable {
    private let burst: Double
    private let perSecond: Double
    private let state: Locked<(available: Double, time: ContinuousClock.Instant)>

    init(burst: Double, perSecond: Double) {
        self.burst = burst
        self.perSecond = perSecond
        state = Locked((available: burst, time: .now))
    }

    /// Returns whether the limit allows another request. If so, the request counts towards the limit.
    func admit() -> Bool {
        let now = ContinuousClock.now
        return state.withLock { state in
            state.available = min(burst, state.available + max(0, (now - state.time) / .seconds(1)) * perSecond)
            state.time = max(state.time, now)
            guard state.available >= 1 else { return false }
            state.available -= 1
            return true
        }
    }
}
