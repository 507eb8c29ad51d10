import Locking
package import TransferCore

/// The times during which this machine had no route to other machines. These times don't count towards the duration of an outage, because no
/// server is at fault. Not stored.
///
/// Shared by all runs of a queue. Without any reports, the machine counts as having a route.
package final class RouteGap: Sendable {
    /// The maximum number of ended gaps to remember. Forgotten gaps count towards the duration of an outage.
    private static let maximumCount = 1_000

    private struct State {
        /// The uptimes at which the ended gaps began and ended.
        var ended: [(start: Duration, end: Duration)] = []
        /// The uptime since which the machine has no route; nil if it has a route.
        var openSince: Duration?
    }

    private let state = Locked(State())

    package init() {}

    /// Records that the machine has no route. Has no effect if the machine already had none.
    package func begin(at uptime: Duration) {
        state.withLock { if $0.openSince == nil { $0.openSince = uptime } }
    }

    /// Records that the machine has a route. Has no effect if the machine already had one.
    package func end(at uptime: Duration) {
        state.withLock { state in
            guard let start = state.openSince else { return }
            state.openSince = nil
            state.ended = state.ended.suffix(Self.maximumCount - 1) + [(start, uptime)]
        }
    }

    /// The start of an outage, moved forward by the time without a route; nil while the machine has no route, so that the outage doesn't
    /// count. Returns `since` unchanged for loopback addresses, for IPv6 link-local addresses, for an address without a host, and for an
    /// endpoint behind a proxy, because such an endpoint may need no route.
    ///
    /// - Parameter since: The uptime at which the outage began.
    package func start(ofOutageSince since: Duration, at endpoint: Endpoint) -> Duration? {
        if Self.isLocal(endpoint) { return since }
        return state.withLock { state in
            guard state.openSince == nil else { return nil }
            return state.ended.reduce(since) { $0 + max(.zero, $1.end - max($1.start, since)) }
        }
    }

    private static func isLocal(_ endpoint: Endpoint) -> Bool {
        guard endpoint.settings["proxy"] == nil, let host = endpoint.host?.lowercased().filter({ !"[]".contains($0) }) else { return true }
        return host == "::1" || host == "ip6-localhost" || host == "localhost" || host.hasSuffix(".localhost")
            || ["127.", "::ffff:127.", "localhost.", "fe80:"].contains(where: host.hasPrefix)
    }
}
