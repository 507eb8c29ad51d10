import Locking

/// A result that one caller waits for. Only the first result has an effect, and it may arrive before the caller waits.
package final class SingleResult<Value: Sendable>: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Value, any Error>?
        var result: Result<Value, any Error>?
    }

    private let state = Locked(State())

    package init() {}

    /// Sets the result.
    ///
    /// - Returns: Whether this is the first result.
    @discardableResult package func resume(_ result: Result<Value, any Error>) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, any Error>?) in
            guard state.result == nil else { return (false, nil) }
            state.result = result
            defer { state.continuation = nil }
            return (true, state.continuation)
        }
        continuation?.resume(with: result)
        return isFirst
    }

    /// Waits for the result, even if the calling task is cancelled. Only one caller can wait.
    package func value() async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let result = state.withLock { state -> Result<Value, any Error>? in
                if state.result == nil { state.continuation = continuation }
                return state.result
            }
            if let result { continuation.resume(with: result) }
        }
    }

    /// Waits for the result. If the calling task is cancelled first, `CancellationError` becomes the result, and later results have no effect.
    /// Only one caller can wait.
    ///
    /// - Parameter onCancel: Called if the calling task is cancelled before a result is set.
    package func valueUnlessCancelled(onCancel: @escaping @Sendable () -> Void = {}) async throws -> Value {
        try await withTaskCancellationHandler {
            try await value()
        } onCancel: {
            if resume(.failure(CancellationError())) { onCancel() }
        }
    }
}
