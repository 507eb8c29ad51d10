import Locking
import Synchronization
import TransferCore

/// The states of the endpoints that a queue has used since it was opened. Shared by all runs of the queue.
package final class EndpointStates: Sendable {
    private struct Contents: Sendable {
        var states: [EndpointHealth.Key: EndpointState] = [:]
        /// The endpoints that accepted the credentials of their account. Unlike the keys of `states`, the elements include the credentials,
        /// because another account may use the same address with other credentials.
        var authenticated: Set<Endpoint> = []
    }

    private let contents = Locked(Contents())

    package init() {}

    func of(_ endpoint: Endpoint) -> EndpointState {
        let key = EndpointHealth.Key(endpoint)
        return contents.withLock { contents in
            if let state = contents.states[key] { return state }
            let state = EndpointState()
            contents.states[key] = state
            return state
        }
    }

    func authenticated(_ endpoint: Endpoint) {
        contents.withLock { _ = $0.authenticated.insert(endpoint) }
    }

    func isAuthenticated(_ endpoint: Endpoint) -> Bool {
        contents.withLock { $0.authenticated.contains(endpoint) }
    }

    func forgetAuthentication(of endpoints: [Endpoint]) {
        contents.withLock { $0.authenticated.subtract(endpoints) }
    }
}

/// The activity of one endpoint for all files of a queue. ``noteActivity()`` uses no lock, because it is called each time bytes move.
package final class EndpointState: Sendable {
    struct File: Hashable, Sendable {
        var session: SessionKey
        var position: Int64
    }

    /// The failures at an endpoint since its last response.
    package struct FailureSeries: Sendable {
        /// The number of times, since the queue was opened, that the endpoint responded for the first time, or again after a failure.
        package var responses = 0
        /// Whether several files have failed since the last response.
        package var isShared = false
        fileprivate var file: File?

        package init() {}
    }

    /// Whether activity was reported since the last reported failure.
    private let isActivityReported = Atomic(false)
    /// Whether the endpoint has responded since the last failure of a file.
    private let hasResponded = Atomic(false)
    private let series = Locked(FailureSeries())

    /// Records activity, and returns whether the activity must be reported.
    func noteActivity() -> Bool {
        !isActivityReported.load(ordering: .relaxed) && !isActivityReported.exchange(true, ordering: .relaxed)
    }

    /// Records that a failure of the endpoint was reported. The next activity must be reported, even if earlier activity was already reported.
    func noteFailure() {
        isActivityReported.store(false, ordering: .relaxed)
    }

    func responded() {
        guard !hasResponded.load(ordering: .relaxed), !hasResponded.exchange(true, ordering: .relaxed) else { return }
        series.withLock { series in
            series.responses += 1
            series.isShared = false
            series.file = nil
        }
    }

    /// Records that a file failed, possibly because of the endpoint.
    ///
    /// - Returns: The failures since the endpoint's last response, including this failure.
    func failed(_ file: File) -> FailureSeries {
        hasResponded.store(false, ordering: .relaxed)
        return series.withLock { series in
            if let other = series.file, other != file { series.isShared = true }
            series.file = file
            return series
        }
    }
}
