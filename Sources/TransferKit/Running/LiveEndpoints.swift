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

/// What one endpoint does for all files of a queue. Asked as often as bytes move.
package final class EndpointLiveness: Sendable {
    /// One file of one session.
    struct File: Hashable, Sendable {
        var session: SessionKey
        var position: Int64
    }

    /// The failures at an endpoint since its last answer.
    package struct Row: Sendable {
        /// How often the endpoint answered after a failure.
        package var answers = 0
        /// Whether several files failed since the last answer.
        package var isShared = false
        fileprivate var file: File?

        package init() {}
    }

    private let isSeen = Atomic(false)
    private let isAnswered = Atomic(false)
    private let row = Locked(Row())

    /// Something moved; true if that is news.
    func noteSign() -> Bool {
        !isSeen.load(ordering: .relaxed) && !isSeen.exchange(true, ordering: .relaxed)
    }

    /// A failure was told: the next byte is news.
    func noteFailure() {
        isSeen.store(false, ordering: .relaxed)
    }

    /// The endpoint answered: it did something for a file.
    func answered() {
        guard !isAnswered.load(ordering: .relaxed), !isAnswered.exchange(true, ordering: .relaxed) else { return }
        row.withLock { row in
            row.answers += 1
            row.isShared = false
            row.file = nil
        }
    }

    /// A file failed in a way that may be the endpoint's fault.
    ///
    /// - Returns: The failures since the endpoint's last answer, this one included.
    func failed(_ file: File) -> Row {
        isAnswered.store(false, ordering: .relaxed)
        return row.withLock { row in
            if let other = row.file, other != file { row.isShared = true }
            row.file = file
            return row
        }
    }
}
