import Locking
package import TransferCore

/// Whether this machine has a route to other machines. Outages don't count for the time without a route, because no server is at fault. Not stored.
///
/// Shared by all runs of a queue. A queue that is not informed of routes always has one.
package final class RouteGap: Sendable {
    private enum State {
        /// The machine has had a route since this uptime.
        case ended(at: Duration)
        case isOpen
    }

    private let state = Locked(State.ended(at: .zero))

    package init() {}

    /// Records that the machine has no route.
    package func begin() { state.withLock { $0 = .isOpen } }

    /// Records that the machine has a route. No effect if it already had one.
    package func end(at uptime: Duration) {
        state.withLock { if case .isOpen = $0 { $0 = .ended(at: uptime) } }
    }

    /// The uptime from which an outage of an endpoint counts; nil while the machine has no route, so that the outage doesn't count. Loopback addresses
    /// need no route.
    ///
    /// - Parameter since: The uptime at which the outage began.
    package func start(ofOutageSince since: Duration, at endpoint: Endpoint) -> Duration? {
        if let host = endpoint.host, host == "localhost" || host == "::1" || host == "[::1]" || host.hasPrefix("127.") { return since }
        return state.withLock { if case .ended(let end) = $0 { max(since, end) } else { nil } }
    }
}
