import TransferCore

/// Hands the result of an order to whoever waits for it: the first one that there is.
final class OrderCompletion: Sendable {
    private enum State {
        case waiting(CheckedContinuation<TransferOrder.Outcome, any Error>?)
        case early(Result<TransferOrder.Outcome, any Error>)
        case done
    }

    private let state = Locked(State.waiting(nil))

    /// The caller waits from now on. Called once.
    func attach(_ continuation: CheckedContinuation<TransferOrder.Outcome, any Error>) {
        let early: Result<TransferOrder.Outcome, any Error>? = state.withLock { state in
            guard case .early(let result) = state else {
                state = .waiting(continuation)
                return nil
            }
            state = .done
            return result
        }
        if let early { continuation.resume(with: early) }
    }

    func complete(_ result: Result<TransferOrder.Outcome, any Error>) {
        let continuation: CheckedContinuation<TransferOrder.Outcome, any Error>? = state.withLock { state in
            guard case .waiting(let continuation) = state else { return nil }
            state = continuation == nil ? .early(result) : .done
            return continuation
        }
        continuation?.resume(with: result)
    }
}
