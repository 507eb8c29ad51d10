import Locking
import Synchronization
import TransferCore

/// The endpoints that showed activity since their last reported failure. Shared by all runs of a queue.
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

/// The activity of one endpoint for all files of a queue. Called each time bytes move.
package final class EndpointLiveness: Sendable {
    /// One file of one session.
    struct File: Hashable, Sendable {
        var session: SessionKey
        var position: Int64
    }

    /// The failures at an endpoint since its last response.
    package struct FailureSeries: Sendable {
        /// The number of times that the endpoint responded again after a failure.
        package var answers = 0
        /// Whether several files failed since the last response.
        package var isShared = false
        fileprivate var file: File?

        package init() {}
    }

    private let isSeen = Atomic(false)
    private let isAnswered = Atomic(false)
    private let series = Locked(FailureSeries())

    /// Records activity. Returns whether it must be reported.
    func noteActivity() -> Bool {
        !isSeen.load(ordering: .relaxed) && !isSeen.exchange(true, ordering: .relaxed)
    }

    /// Records a reported failure: the next activity must be reported.
    func noteFailure() {
        isSeen.store(false, ordering: .relaxed)
    }

    /// Records a response: the endpoint performed a request for a file.
    func answered() {
        guard !isAnswered.load(ordering: .relaxed), !isAnswered.exchange(true, ordering: .relaxed) else { return }
        series.withLock { series in
            series.answers += 1
            series.isShared = false
            series.file = nil
        }
    }

    /// Records a failure of a file that may be the endpoint's fault.
    ///
    /// - Returns: The failures since the endpoint's last response, including this failure.
    func failed(_ file: File) -> FailureSeries {
        isAnswered.store(false, ordering: .relaxed)
        return series.withLock { series in
            if let other = series.file, other != file { series.isShared = true }
            series.file = file
            return series
        }
    }
}
