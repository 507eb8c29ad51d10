import Locking
import TransferCore

/// The failures and successes of one run at each endpoint, shared by all files of the run.
final class EndpointRecord: Sendable {
    private struct Known: Sendable {
        /// The number of reported failures. Files in flight that fail together count as one failure of the endpoint.
        var failures = 0
        /// The uptime until which the run avoids the endpoint; nil if the run does not avoid it.
        var avoidedUntil: Duration?
        /// Whether the endpoint has been unreachable at least once since it last worked, or since all endpoints were retried.
        var isDown = false
    }

    private struct State: Sendable {
        var known: [Endpoint: Known] = [:]
        /// The endpoint of the run's last attempt; nil before the first attempt.
        var announced: Endpoint?
        /// The location of the endpoint of the session's last attempt, in this run or an earlier one; nil before the first attempt.
        var location: String?
        /// The uptime until which the run uses no unreachable endpoint, because all endpoints were unreachable; nil without such a pause.
        var pausedUntil: Duration?
    }

    /// How long all files of the run avoid an endpoint after one file could not reach it, provided that another endpoint is available.
    private static let avoidance = Duration.seconds(30)

    private let state = Locked(State())

    /// - Parameter location: The location of the endpoint that the session used last.
    init(location: String?) {
        state.withLock { $0.location = location }
    }

    /// Records the start of an attempt.
    ///
    /// - Returns: `isNew` is true if the endpoint differs from the endpoint of the run's last attempt. `before` is the location of the session's last
    ///   attempt; nil if the location is the same, or for the session's first attempt.
    func announce(_ endpoint: Endpoint) -> (isNew: Bool, before: String?) {
        state.withLock { state in
            defer {
                state.announced = endpoint
                state.location = endpoint.location
            }
            return (state.announced != endpoint, state.location == endpoint.location ? nil : state.location)
        }
    }

    /// The endpoints that the run avoids now, because they were unreachable.
    func avoided(at uptime: Duration) -> Set<Endpoint> {
        state.withLock { state in
            if let end = state.pausedUntil, end <= uptime { Self.retryAll(&state) }
            return Set(state.known.filter { $0.value.avoidedUntil.map { $0 > uptime } ?? false }.keys)
        }
    }

    /// Makes the run try all endpoints again in their usual order.
    func retryAll() { state.withLock { Self.retryAll(&$0) } }

    private static func retryAll(_ state: inout State) {
        state.pausedUntil = nil
        for endpoint in state.known.keys {
            state.known[endpoint]?.avoidedUntil = nil
            state.known[endpoint]?.isDown = false
        }
    }

    /// The number of failures reported for an endpoint so far. Read it when an attempt begins.
    func failures(of endpoint: Endpoint) -> Int {
        state.withLock { $0.known[endpoint]?.failures ?? 0 }
    }

    /// Records that the endpoint responded in an attempt.
    func recordResponse(of endpoint: Endpoint) {
        state.withLock { state in
            state.known[endpoint]?.avoidedUntil = nil
            state.known[endpoint]?.isDown = false
            state.pausedUntil = nil
        }
    }

    /// Makes all files of the run avoid the endpoints until `end`, the uptime of a retry. Has no effect unless there are several endpoints, and
    /// all of them are unreachable. Without this pause, each file would try all endpoints, and fail.
    func pause(_ endpoints: [Endpoint], until end: Duration, at uptime: Duration) {
        _ = avoided(at: uptime)
        state.withLock { state in
            guard endpoints.count > 1, endpoints.allSatisfy({ state.known[$0]?.isDown ?? false }) else { return }
            let end = min(state.pausedUntil ?? end, end)
            state.pausedUntil = end
            for endpoint in endpoints { state.known[endpoint]?.avoidedUntil = end }
        }
    }

    /// The uptime until which the run uses no unreachable endpoint; nil if it may use all endpoints now.
    func pauseEnd(at uptime: Duration) -> Duration? {
        state.withLock { $0.pausedUntil.flatMap { $0 > uptime ? $0 : nil } }
    }

    /// Records a failure that concerns the endpoint.
    ///
    /// - Parameter failures: The number of reported failures when the attempt began.
    /// - Returns: Whether the failure must be reported; false if another failure was reported during the attempt.
    func failed(_ endpoint: Endpoint, since failures: Int, isUnreachable: Bool, at uptime: Duration) -> Bool {
        state.withLock { state in
            var known = state.known[endpoint] ?? Known()
            defer { state.known[endpoint] = known }
            if isUnreachable {
                known.avoidedUntil = uptime + Self.avoidance
                known.isDown = true
            }
            guard known.failures == failures else { return false }
            known.failures += 1
            return true
        }
    }
}
