import Locking
import TransferCore

final class ConnectionEnding: Sendable {
    /// nil if the client closed the connection.
    struct Outcome: Sendable {
        let error: TransferError?
    }

    private struct State {
        var outcome: Outcome?
        var waiters: [CheckedContinuation<Outcome, Never>] = []
    }

    private let state = Locked(State())

    var outcome: Outcome? { state.withLock { $0.outcome } }

    /// The last action of the connection's thread.
    func resolve(_ error: TransferError?) {
        let outcome = Outcome(error: error)
        let waiters = state.withLock { state in
            defer { state.waiters = [] }
            state.outcome = outcome
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: outcome) }
    }

    /// Ignores cancellation of the task.
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
