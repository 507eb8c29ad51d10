import Locking
import TransferCore

/// A request body that the caller produces while the request is running. The caller writes bytes, and the engine sends them. The request
/// pauses while no bytes are available.
///
/// A stream serves one request. It does not keep sent bytes, so they can't be sent again.
package final class HTTPBodyStream: Sendable {
    /// The bytes that ``take()`` returns to the engine, or the reason why it returns none.
    enum Supply {
        case arrays([[UInt8]])
        /// No bytes are available yet. The wake-up function is called when bytes arrive or the body ends.
        case later
        case end
        case failed(any Error)
    }

    private struct State {
        var arrays: [[UInt8]] = []
        var count = 0
        var isFinished = false
        var failure: (any Error)?
        var isAttached = false
        /// Whether the stream's request has ended.
        var isAbandoned = false
        var wake: (@Sendable () -> Void)?
        /// Whether the engine is waiting for bytes. If so, the next change must call `wake`.
        var needsWakeUp = false
        var lastWriter: UInt64 = 0
        var writers: [UInt64: CheckedContinuation<Void, any Error>] = [:]
    }

    private let capacity: Int
    private let state = Locked(State())

    /// Creates an empty stream.
    ///
    /// - Parameter capacity: The number of bytes, not yet taken by the engine, above which ``write(_:)`` waits. The stream can use more memory:
    ///   it also keeps the bytes of waiting writes, and the engine keeps the bytes that it has taken but not sent.
    package init(capacity: Int = 1024 * 1024) {
        self.capacity = max(1, capacity)
    }

    /// Adds bytes, and waits while the bytes that the engine has not taken exceed the capacity. Can be called from any task, even before
    /// the request is sent, but not after ``finish()`` or ``fail(_:)``.
    ///
    /// - Throws: A ``CurlEngineError`` of the kind ``CurlEngineError/Kind/requestEnded`` if the request has ended; or `CancellationError`,
    ///   after which the bytes may still be sent.
    package func write(_ bytes: [UInt8]) async throws {
        let (id, wake) = try state.withLock { state in
            guard !state.isAbandoned else { throw Self.ended }
            if !bytes.isEmpty {
                state.arrays.append(bytes)
                state.count += bytes.count
            }
            state.lastWriter += 1
            return (state.lastWriter, bytes.isEmpty ? nil : Self.takeWakeUp(&state))
        }
        wake?()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome = state.withLock { state -> Result<Void, any Error>? in
                    // This check comes first, because a write succeeds if the request took its bytes and then ended.
                    if state.count <= capacity { return .success(()) }
                    if state.isAbandoned { return .failure(Self.ended) }
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.writers[id] = continuation
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            state.withLock { $0.writers.removeValue(forKey: id) }?.resume(throwing: CancellationError())
        }
    }

    /// Ends the body. Call this method once, from any thread.
    package func finish() {
        end { $0.isFinished = true }
    }

    /// Ends the request because the body can't be completed: the request throws `error`. Can be called from any thread.
    package func fail(_ error: any Error) {
        end { $0.failure = error }
    }

    private func end(_ change: (inout State) -> Void) {
        let wake = state.withLock { state in
            change(&state)
            return Self.takeWakeUp(&state)
        }
        wake?()
    }

    private static func takeWakeUp(_ state: inout State) -> (@Sendable () -> Void)? {
        defer { state.needsWakeUp = false }
        return state.needsWakeUp ? state.wake : nil
    }

    private static let ended = CurlEngineError(.requestEnded, "The request that this body belongs to has ended.")
}

extension HTTPBodyStream {
    /// Binds the stream to a request. A stream serves only one request.
    ///
    /// - Parameter wake: Called on any thread when bytes arrive or the body ends, but only after ``take()`` has returned `later`.
    /// - Returns: False if the stream already belongs to a request; otherwise true.
    func attach(wake: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard !state.isAttached else { return false }
            state.isAttached = true
            state.wake = wake
            return true
        }
    }

    /// Removes and returns all bytes of the stream, and resumes the callers of ``write(_:)``. If there are no bytes, or
    /// after ``fail(_:)``, returns the reason instead.
    func take() -> Supply {
        let (supply, writers) = state.withLock { state -> (Supply, [CheckedContinuation<Void, any Error>]) in
            if let failure = state.failure { return (.failed(failure), []) }
            guard state.arrays.isEmpty else {
                defer {
                    state.arrays = []
                    state.count = 0
                    state.writers = [:]
                }
                return (.arrays(state.arrays), Array(state.writers.values))
            }
            if state.isFinished { return (.end, []) }
            state.needsWakeUp = true
            return (.later, [])
        }
        for writer in writers { writer.resume() }
        return supply
    }

    /// Drops all bytes, and resumes the callers of ``write(_:)`` with an error. Called when the request has ended.
    func abandon() {
        let writers = state.withLock { state in
            defer {
                state.arrays = []
                state.writers = [:]
                state.wake = nil
                state.needsWakeUp = false
            }
            state.isAbandoned = true
            return Array(state.writers.values)
        }
        for writer in writers { writer.resume(throwing: Self.ended) }
    }
}
