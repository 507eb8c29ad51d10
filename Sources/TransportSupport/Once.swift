import Locking

/// A result that one caller waits for until somebody has it. The first one counts; it may be there before the caller is.
package final class Once<Value: Sendable>: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Value, any Error>?
        var result: Result<Value, any Error>?
    }

    private let state = Locked(State())

    package init() {}

    /// - Returns: Whether this is the result, and none came before.
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

    /// Waits for the result, whether the caller is cancelled or not. Called once.
    package func value() async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let result = state.withLock { state -> Result<Value, any Error>? in
                if state.result == nil { state.continuation = continuation }
                return state.result
            }
            if let result { continuation.resume(with: result) }
        }
    }

    /// Waits for the result, or until the caller is cancelled. Called once.
    ///
    /// - Parameter onCancel: Called when the caller was cancelled before there was a result.
    package func valueUnlessCancelled(onCancel: @escaping @Sendable () -> Void = {}) async throws -> Value {
        try await withTaskCancellationHandler {
            try await value()
        } onCancel: {
            if resume(.failure(CancellationError())) { onCancel() }
        }
    }
}
