import TransferCore

/// The endpoints that accepted an attempt in this process.
package final class ProvenEndpoints: Sendable {
    private let endpoints = Locked<Set<Endpoint>>([])

    package init() {}

    func insert(_ endpoint: Endpoint) {
        endpoints.withLock { _ = $0.insert(endpoint) }
    }

    func contains(_ endpoint: Endpoint) -> Bool {
        endpoints.withLock { $0.contains(endpoint) }
    }
}

/// What one run learns of endpoints, over all of its files.
final class EndpointRecord: Sendable {
    private struct Known: Sendable {
        /// Nil before the first attempt told.
        var works: Bool?
        /// How many failures were told: files in flight together fail together, and that is one failure of the endpoint.
        var failures = 0
        var avoidedUntil: Duration?
    }

    private struct State: Sendable {
        var known: [Endpoint: Known] = [:]
        var announced: Endpoint?
    }

    /// How long the other files of a session keep away from an endpoint that could not be reached, if they have another.
    private static let avoidance = Duration.seconds(30)

    private let state = Locked(State())

    /// Whether the endpoint is another one than that of the last attempt.
    func announce(_ endpoint: Endpoint) -> Bool {
        state.withLock { state in
            defer { state.announced = endpoint }
            return state.announced != endpoint
        }
    }

    func avoided(at uptime: Duration) -> Set<Endpoint> {
        state.withLock { state in
            Set(state.known.filter { $0.value.avoidedUntil.map { $0 > uptime } ?? false }.keys)
        }
    }

    /// How many failures were told of an endpoint until now; an attempt asks as it begins.
    func failures(of endpoint: Endpoint) -> Int {
        state.withLock { $0.known[endpoint]?.failures ?? 0 }
    }

    /// An attempt moved something; true if that is news.
    func works(_ endpoint: Endpoint) -> Bool {
        state.withLock { state in
            var known = state.known[endpoint] ?? Known()
            defer { state.known[endpoint] = known }
            known.avoidedUntil = nil
            guard known.works != true else { return false }
            known.works = true
            return true
        }
    }

    /// An attempt that began after so many failures failed in a way that tells of the endpoint; true if that is news.
    func failed(_ endpoint: Endpoint, since failures: Int, isUnreachable: Bool, at uptime: Duration) -> Bool {
        state.withLock { state in
            var known = state.known[endpoint] ?? Known()
            defer { state.known[endpoint] = known }
            if isUnreachable { known.avoidedUntil = uptime + Self.avoidance }
            known.works = false
            guard known.failures == failures else { return false }
            known.failures += 1
            return true
        }
    }
}
