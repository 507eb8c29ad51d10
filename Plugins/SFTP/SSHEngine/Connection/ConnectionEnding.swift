import Locking
import TransferCore

/// Stores the reason why a connection ended, and resumes the tasks that wait for the end.
final class ConnectionEnding: Sendable {
    /// The reason why the connection ended; the error is nil if the client closed it.
    struct Outcome: Sendable {
        let error: TransferError?
    }

    private struct State {
        var outcome: Outcome?
        var waiters: [CheckedContinuation<Outcome, Never>] = []
    }

    private let state = Locked(State())

    /// The reason for the end; nil while the connection is open.
    var outcome: Outcome? { state.withLock { $0.outcome } }

    /// Stores the reason and resumes the waiting tasks. This is the last action of the connection's thread.
    func resolve(_ error: TransferError?) {
        let outcome = Outcome(error: error)
        let waiters = state.withLock { state in
            defer { state.waiters = [] }
            state.outcome = outcome
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: outcome) }
    }

    /// Waits until the connection has ended, even if the task is cancelled.
    func wait() async -> Outcome {
        await withCheckedContinuation { continuation in
            let outcome = state.withLock { state -> Outcome? in
                if state.outcome == nil { state.waiters.append(continuation) }
                return state.outcome
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }
}
