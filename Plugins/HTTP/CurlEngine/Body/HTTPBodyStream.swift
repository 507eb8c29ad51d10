import Locking
import TransferCore

/// A request's body that is produced while it is sent. One side writes and the engine sends; the transfer pauses while there is nothing to
/// send.
///
/// Serves one request. Sent bytes are not kept.
public final class HTTPBodyStream: Sendable {
    /// The result of the engine's look for bytes.
    enum Supply {
        case pieces([[UInt8]])
        /// Nothing now; the wake-up follows when there is more.
        case later
        case end
        case failed(any Error)
    }

    private struct State {
        var pieces: [[UInt8]] = []
        var count = 0
        var isFinished = false
        var failure: (any Error)?
        /// Whether a request took the stream.
        var isTaken = false
        /// Whether that request has ended.
        var isAbandoned = false
        var wake: (@Sendable () -> Void)?
        var isWakeWanted = false
        var lastWriter: UInt64 = 0
        var writers: [UInt64: CheckedContinuation<Void, any Error>] = [:]
    }

    private let capacity: Int
    private let state = Locked(State())

    /// Creates an empty stream.
    ///
    /// - Parameter capacity: How many unsent bytes can wait before ``write(_:)`` waits, too; twice as many can be in memory.
    public init(capacity: Int = 1024 * 1024) {
        self.capacity = max(1, capacity)
    }

    /// Adds bytes, and waits while too many are unsent. Can be called from any task, also before the request is made, but not after
    /// ``finish()`` or ``fail(_:)``.
    ///
    /// - Throws: A ``CurlEngineError`` of the kind ``CurlEngineError/Kind/requestEnded`` if the request has ended, or `CancellationError`,
    ///   after which the bytes may still be sent.
    public func write(_ bytes: [UInt8]) async throws {
        let (id, wake) = try state.withLock { state in
            guard !state.isAbandoned else { throw Self.ended }
            if !bytes.isEmpty {
                state.pieces.append(bytes)
                state.count += bytes.count
            }
            state.lastWriter += 1
            return (state.lastWriter, bytes.isEmpty ? nil : Self.takeWake(&state))
        }
        wake?()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome = state.withLock { state -> Result<Void, any Error>? in
                    // Checked first, because the request can have ended with exactly these bytes.
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

    /// Ends the body. Called once, from any thread.
    public func finish() {
        end { $0.isFinished = true }
    }

    /// Ends the request with an error, because the body can't be completed. Called from any thread.
    public func fail(_ error: any Error) {
        end { $0.failure = error }
    }

    private func end(_ change: (inout State) -> Void) {
        let wake = state.withLock { state in
            change(&state)
            return Self.takeWake(&state)
        }
        wake?()
    }

    private static func takeWake(_ state: inout State) -> (@Sendable () -> Void)? {
        defer { state.isWakeWanted = false }
        return state.isWakeWanted ? state.wake : nil
    }

    private static let ended = CurlEngineError(.requestEnded, "The request that this body belongs to has ended.")
}

extension HTTPBodyStream {
    /// Binds the stream to a request.
    ///
    /// - Parameter wake: Called from any thread when there are bytes after ``take()`` found none.
    /// - Returns: Whether the stream was free.
    func attach(wake: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard !state.isTaken else { return false }
            state.isTaken = true
            state.wake = wake
            return true
        }
    }

    /// Takes all waiting bytes and resumes writers.
    func take() -> Supply {
        let (supply, writers) = state.withLock { state -> (Supply, [CheckedContinuation<Void, any Error>]) in
            if let failure = state.failure { return (.failed(failure), []) }
            guard state.pieces.isEmpty else {
                defer {
                    state.pieces = []
                    state.count = 0
                    state.writers = [:]
                }
                return (.pieces(state.pieces), Array(state.writers.values))
            }
            if state.isFinished { return (.end, []) }
            state.isWakeWanted = true
            return (.later, [])
        }
        for writer in writers { writer.resume() }
        return supply
    }

    /// Resumes writers with an error, because the request has ended.
    func abandon() {
        let writers = state.withLock { state in
            defer {
                state.pieces = []
                state.writers = [:]
                state.wake = nil
                state.isWakeWanted = false
            }
            state.isAbandoned = true
            return Array(state.writers.values)
        }
        for writer in writers { writer.resume(throwing: Self.ended) }
    }
}
