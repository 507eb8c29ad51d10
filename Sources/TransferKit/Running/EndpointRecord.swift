import Locking
import TransferCore

/// The endpoints that accepted an attempt in this process.
package final class ProvenEndpoints: Sendable {
    private let endpoints = Locked<Set<Endpoint>>([])

    package init() {}

    func insert(_ endpoint: Endpoint) {
        endpoints.withLock { _ = $0.insert(endpoint) }
    }

    /// What they accept is not known any more.
    func remove(_ refused: [Endpoint]) {
        endpoints.withLock { $0.subtract(refused) }
    }

    func contains(_ endpoint: Endpoint) -> Bool {
        endpoints.withLock { $0.contains(endpoint) }
    }
}

/// What one run learns of endpoints, over all of its files.
final class EndpointRecord: Sendable {
    private struct Known: Sendable {
        /// How many failures were told: files in flight together fail together, and that is one failure of the endpoint.
        var failures = 0
        var avoidedUntil: Duration?
        /// Whether it could not be reached since it last worked, or since all were to be tried again.
        var isDown = false
    }

    private struct State: Sendable {
        var known: [Endpoint: Known] = [:]
        var announced: Endpoint?
        /// The location of the endpoint of the last attempt, of an earlier run too.
        var location: String?
        /// Set while no endpoint could be reached.
        var restsUntil: Duration?
    }

    /// How long the other files of a session keep away from an endpoint that could not be reached, if they have another.
    private static let avoidance = Duration.seconds(30)

    private let state = Locked(State())

    /// - Parameter location: Of the endpoint that the session used last.
    init(location: String?) {
        state.withLock { $0.location = location }
    }

    /// An attempt begins.
    ///
    /// - Returns: Whether the endpoint is another one than that of the run's last attempt, and where the session was before if that is elsewhere.
    func announce(_ endpoint: Endpoint) -> (isNew: Bool, before: String?) {
        state.withLock { state in
            defer {
                state.announced = endpoint
                state.location = endpoint.location
            }
            return (state.announced != endpoint, state.location == endpoint.location ? nil : state.location)
        }
    }

    func avoided(at uptime: Duration) -> Set<Endpoint> {
        state.withLock { state in
            if let end = state.restsUntil, end <= uptime {
                // All of them are tried again, in their order.
                state.restsUntil = nil
                for endpoint in state.known.keys {
                    state.known[endpoint]?.avoidedUntil = nil
                    state.known[endpoint]?.isDown = false
                }
            }
            return Set(state.known.filter { $0.value.avoidedUntil.map { $0 > uptime } ?? false }.keys)
        }
    }

    /// How many failures were told of an endpoint until now; an attempt asks as it begins.
    func failures(of endpoint: Endpoint) -> Int {
        state.withLock { $0.known[endpoint]?.failures ?? 0 }
    }

    /// An attempt moved something.
    func works(_ endpoint: Endpoint) {
        state.withLock { state in
            state.known[endpoint]?.avoidedUntil = nil
            state.known[endpoint]?.isDown = false
            state.restsUntil = nil
        }
    }

    /// A file that could reach none of several endpoints is tried again at a time: the others wait for that, rather than find out the same one by
    /// one.
    func rest(from endpoints: [Endpoint], until end: Duration, at uptime: Duration) {
        _ = avoided(at: uptime)
        state.withLock { state in
            guard endpoints.count > 1, endpoints.allSatisfy({ state.known[$0]?.isDown ?? false }) else { return }
            let end = min(state.restsUntil ?? end, end)
            state.restsUntil = end
            for endpoint in endpoints { state.known[endpoint]?.avoidedUntil = end }
        }
    }

    /// Until when nobody asks endpoints that could not be reached; nil if that may be done now.
    func rest(at uptime: Duration) -> Duration? {
        state.withLock { $0.restsUntil.flatMap { $0 > uptime ? $0 : nil } }
    }

    /// An attempt that began after so many failures failed in a way that tells of the endpoint; true if that is news.
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
