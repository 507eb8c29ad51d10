import Locking
import TransferCore

/// The end of a connection, and its reason.
final class ConnectionEnding: Sendable {
    /// The error is nil after a requested end.
    struct Outcome: Sendable {
        let error: TransferError?
    }

    private struct State {
        var outcome: Outcome?
        var waiters: [CheckedContinuation<Outcome, Never>] = []
    }

    private let state = Locked(State())

    /// Nil while the connection is open.
    var outcome: Outcome? { state.withLock { $0.outcome } }

    /// The last action of the connection's thread.
    func tell(_ error: TransferError?) {
        let outcome = Outcome(error: error)
        let waiters = state.withLock { state in
            defer { state.waiters = [] }
            state.outcome = outcome
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: outcome) }
    }

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
