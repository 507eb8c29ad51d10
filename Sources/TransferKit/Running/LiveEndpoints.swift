import Locking
import Synchronization
import TransferCore

/// Which endpoints gave a sign of life since the last failure there that was told; one for all runs of a queue.
package final class LiveEndpoints: Sendable {
    private let endpoints = Locked<[EndpointHealth.Key: EndpointLiveness]>([:])

    package init() {}

    func of(_ endpoint: Endpoint) -> EndpointLiveness {
        let key = EndpointHealth.Key(endpoint)
        return endpoints.withLock { endpoints in
            if let known = endpoints[key] { return known }
            let liveness = EndpointLiveness()
            endpoints[key] = liveness
            return liveness
        }
    }
}

/// Whether bytes moved at an endpoint since the last failure there, whoever moved them. Asked as often as bytes move.
final class EndpointLiveness: Sendable {
    private let isSeen = Atomic(false)

    /// Something moved; true if that is news.
    func noteSign() -> Bool {
        !isSeen.load(ordering: .relaxed) && !isSeen.exchange(true, ordering: .relaxed)
    }

    /// A failure was told: the next byte is news.
    func noteFailure() {
        isSeen.store(false, ordering: .relaxed)
    }
}
