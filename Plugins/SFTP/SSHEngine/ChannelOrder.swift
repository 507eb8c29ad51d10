import TransferCore

/// A channel that somebody wants.
struct ChannelOrder: Sendable {
    typealias ID = UInt64

    /// What runs at its other end (RFC 4254, section 6.5).
    enum Program: Sendable {
        case subsystem(String)
        case command([UInt8])
    }

    /// How it ended.
    struct End: Sendable {
        var error: TransferError?
        var status: Int32?
        var signal: String?
        var errorOutput: [UInt8] = []
    }

    let id: ID
    let program: Program
    let handler: any SSHChannelHandler
    /// Told once whether the program was started.
    let opened: OpeningPromise<Void>
    /// Told once, if it was started, when the channel is gone.
    var ended: @Sendable (End) -> Void = { _ in }
}

/// What somebody waits for until it is there, goes wrong, or is no longer wanted; whichever is first.
final class OpeningPromise<Value: Sendable>: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<Value, any Error>)
        case done(Result<Value, any Error>)
        case taken
    }

    private let state = Locked(State.idle)

    /// - Returns: Whether this was the first result.
    @discardableResult
    func complete(_ result: Result<Value, any Error>) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, any Error>?) in
            switch state {
            case .idle:
                state = .done(result)
                return (true, nil)
            case .waiting(let continuation):
                state = .taken
                return (true, continuation)
            case .done, .taken:
                return (false, nil)
            }
        }
        continuation?.resume(with: result)
        return isFirst
    }

    /// Called once.
    func value() async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let result = state.withLock { state -> Result<Value, any Error>? in
                guard case .done(let result) = state else {
                    state = .waiting(continuation)
                    return nil
                }
                state = .taken
                return result
            }
            if let result { continuation.resume(with: result) }
        }
    }
}
