import Locking
import TransferCore

/// The failures and successes of one run at each endpoint, shared by all files of the run.
final class EndpointRecord: Sendable {
    private struct Outcomes: Sendable {
        /// The number of reported failures. Files in flight that fail together count as one failure of the endpoint.
        var failures = 0
        /// The uptime until which the run avoids the endpoint; nil if the run does not avoid it.
        var avoidedUntil: Duration?
        /// Whether the endpoint has been unreachable at least once since it last worked, or since all endpoints were retried.
        var isDown = false
    }

    private struct State: Sendable {
        var outcomes: [Endpoint: Outcomes] = [:]
        /// The endpoint of the run's last attempt; nil before the first attempt.
        var lastEndpoint: Endpoint?
        /// The location of the endpoint of the session's last attempt, in this run or an earlier one; nil before the first attempt.
        var lastLocation: String?
        /// The uptime at which a pause ends; nil without a pause. During a pause, the run avoids all endpoints, because all were unreachable.
        var pausedUntil: Duration?
    }

    /// How long all files of the run avoid an endpoint after one file could not reach it, provided that another endpoint is available.
    private static let avoidance = Duration.seconds(30)

    private let state = Locked(State())

    /// - Parameter location: The location of the endpoint that the session used last; nil before the session's first attempt.
    init(location: String?) {
        state.withLock { $0.lastLocation = location }
    }

    /// Records the start of an attempt.
    ///
    /// - Returns: `isNew` is true if the endpoint differs from the endpoint of the run's last attempt. `before` is the location of the session's last
    ///   attempt; nil if the location is the same, or for the session's first attempt.
    func announce(_ endpoint: Endpoint) -> (isNew: Bool, before: String?) {
        state.withLock { state in
            defer {
                state.lastEndpoint = endpoint
                state.lastLocation = endpoint.location
            }
            return (state.lastEndpoint != endpoint, state.lastLocation == endpoint.location ? nil : state.lastLocation)
        }
    }

    func avoided(at uptime: Duration) -> Set<Endpoint> {
        state.withLock { state in
            if let end = state.pausedUntil, end <= uptime { Self.retryAll(&state) }
            return Set(state.outcomes.filter { $0.value.avoidedUntil.map { $0 > uptime } ?? false }.keys)
        }
    }

    /// Makes the run try all endpoints again in their usual order.
    func retryAll() { state.withLock { Self.retryAll(&$0) } }

    private static func retryAll(_ state: inout State) {
        state.pausedUntil = nil
        for endpoint in state.outcomes.keys {
            state.outcomes[endpoint]?.avoidedUntil = nil
            state.outcomes[endpoint]?.isDown = false
        }
    }

    /// The number of failures reported for an endpoint so far. Read this number when an attempt begins.
    func failures(of endpoint: Endpoint) -> Int {
        state.withLock { $0.outcomes[endpoint]?.failures ?? 0 }
    }

    func recordResponse(of endpoint: Endpoint) {
        state.withLock { state in
            state.outcomes[endpoint]?.avoidedUntil = nil
            state.outcomes[endpoint]?.isDown = false
            state.pausedUntil = nil
        }
    }

    /// Makes all files of the run avoid the endpoints until `end`, the uptime of a retry, or until the end of the current pause if that is
    /// earlier. Has no effect unless there are several endpoints, and all of them are unreachable. Without this pause, each file would try all
    /// endpoints, and fail.
    func pause(_ endpoints: [Endpoint], until end: Duration, at uptime: Duration) {
        _ = avoided(at: uptime)
        state.withLock { state in
            guard endpoints.count > 1, endpoints.allSatisfy({ state.outcomes[$0]?.isDown ?? false }) else { return }
            let end = min(state.pausedUntil ?? end, end)
            state.pausedUntil = end
            for endpoint in endpoints { state.outcomes[endpoint]?.avoidedUntil = end }
        }
    }

    /// The uptime at which the run's pause ends; nil without a pause. Until then, the run avoids the unreachable endpoints.
    func pauseEnd(at uptime: Duration) -> Duration? {
        state.withLock { $0.pausedUntil.flatMap { $0 > uptime ? $0 : nil } }
    }

    /// Records a failure that concerns the endpoint.
    ///
    /// - Parameter failures: The number of reported failures when the attempt began.
    /// - Returns: Whether the failure must be reported; false if another failure was reported during the attempt.
    func failed(_ endpoint: Endpoint, since failures: Int, isUnreachable: Bool, at uptime: Duration) -> Bool {
        state.withLock { state in
            var outcomes = state.outcomes[endpoint] ?? Outcomes()
            defer { state.outcomes[endpoint] = outcomes }
            if isUnreachable {
                outcomes.avoidedUntil = uptime + Self.avoidance
                outcomes.isDown = true
            }
            guard outcomes.failures == failures else { return false }
            outcomes.failures += 1
            return true
        }
    }
}
