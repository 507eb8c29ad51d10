import Logging
import TransferKit

/// Performs the fleet's requests to this member, which arrive in the responses to heartbeats. After an error, the member retries the
/// request at the next heartbeat.
extension FleetMember {
    /// Performs the fleet's request for a session.
    ///
    /// - Parameter runRequests: The number of calls of `run` since the session was taken.
    func follow(_ request: LeaseRequest, _ id: SessionID, runRequests: Int64) {
        guard let session = taken[id], session.phase == .running, outcomes[id] == nil else { return }
        let operation: SessionOperation
        switch request {
        case .giveBack: return stop(id, isInterrupted: false)
        case .pause where !session.isPaused: operation = .pause
        case .run where session.isPaused: operation = .resume
        case .run where session.runRequests != runRequests: operation = .run()
        case .run, .pause: return
        }
        guard session.isAdopted, !session.isChanging else { return }
        taken[id]?.isChanging = true
        Task { await change(id, session.lease, by: operation, runRequests: runRequests) }
    }

    private func change(_ id: SessionID, _ lease: LeaseReference, by operation: SessionOperation, runRequests: Int64) async {
        var isDone = true
        do {
            if case .run = operation {
                try await queue.runIfUnfinished(id)
            } else {
                _ = try await queue.apply(operation, to: .id(id))
            }
        } catch {
            isDone = false
            logger.warning("A session of the fleet can't be \(operation.participle) now. \(error)", metadata: ["session": "\(id)"])
        }
        guard taken[id]?.lease == lease else { return }
        taken[id]?.isChanging = false
        guard isDone else { return }
        switch operation {
        case .pause: taken[id]?.isPaused = true
        case .resume:
            taken[id]?.isPaused = false
            // If `run` was called for the paused session, the queue must also run the session now.
            follow(.run, id, runRequests: runRequests)
        default: taken[id]?.runRequests = runRequests
        }
    }

    /// Makes the queue try the endpoints of accounts again, and end the delays of the accounts' sessions. Ignores accounts without a new request.
    ///
    /// - Parameter requests: The number of the fleet's requests so far, by account.
    func retryEndpoints(_ requests: [String: Int64]) {
        for (account, count) in requests {
            guard accounts[account] != nil, let before = retries[account], before != count else { continue }
            retries[account] = count
            Task {
                do {
                    try await queue.unblockAccount(account)
                } catch {
                    logger.warning("Cannot try the endpoints of an account again. \(error)", metadata: ["account": "\(account)"])
                    retries[account] = before
                }
            }
        }
    }
}
