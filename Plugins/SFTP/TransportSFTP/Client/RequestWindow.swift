import Locking
import TransferCore

/// Limits how much is in flight over one channel, for all of its files, in the order of waiting.
package final class RequestWindow: Sendable {
    private struct Waiter {
        var number: Int
        var bytes: Int
        var requests: Int
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var bytes: Int
        var requests: Int
        /// How much the window can still grow.
        var growth: (bytes: Int, requests: Int)
        var underway = 0
        /// Nil to use the whole window.
        var pace: RequestPace?
        var waiters: [Waiter] = []
        var lastNumber = 0
        var error: TransferError?

        /// Removes the waiters that can continue.
        mutating func admit() -> [Waiter] {
            var admitted = 0
            let limit = pace?.limit ?? .max
            while admitted < waiters.count, waiters[admitted].bytes <= bytes, waiters[admitted].requests <= requests,
                underway == 0 || underway + waiters[admitted].bytes <= limit
            {
                underway += waiters[admitted].bytes
                bytes -= waiters[admitted].bytes
                requests -= waiters[admitted].requests
                admitted += 1
            }
            defer { waiters.removeFirst(admitted) }
            return Array(waiters.prefix(admitted))
        }
    }

    private let state: Locked<State>

    /// - Parameters:
    ///   - bytes: The maximum number of bytes in flight.
    ///   - requests: How many requests for content can be unanswered.
    ///   - growth: How much the window can grow as it is used.
    ///   - pace: Limits how much of it is used; nil for all.
    package init(bytes: Int, requests: Int, growth: (bytes: Int, requests: Int) = (0, 0), pace: RequestPace? = nil) {
        state = Locked(State(bytes: bytes, requests: requests, growth: growth, pace: pace))
    }

    /// The number of bytes that were acquired and not released.
    package var underway: Int { state.withLock { $0.underway } }

    /// Returns when that much more can be in flight. Release it with ``release(bytes:requests:)``.
    ///
    /// - Throws: The error that the channel ended with; `CancellationError`.
    package func acquire(bytes: Int, requests: Int = 1) async throws {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (admitted, error) = state.withLock { state -> ([Waiter], (any Error)?) in
                    if let error = state.error { return ([], error) }
                    // A cancellation comes after this, or is seen here.
                    if Task.isCancelled { return ([], CancellationError()) }
                    state.waiters.append(Waiter(number: number, bytes: bytes, requests: requests, continuation: continuation))
                    return (state.admit(), nil)
                }
                if let error { continuation.resume(throwing: error) }
                for waiter in admitted { waiter.continuation.resume() }
            }
        } onCancel: {
            let (cancelled, admitted) = state.withLock { state -> (Waiter?, [Waiter]) in
                guard let index = state.waiters.firstIndex(where: { $0.number == number }) else { return (nil, []) }
                let waiter = state.waiters.remove(at: index)
                return (waiter, state.admit())
            }
            cancelled?.continuation.resume(throwing: CancellationError())
            for waiter in admitted { waiter.continuation.resume() }
        }
    }

    /// Releases what was acquired, and as much again as far as the window can grow.
    package func release(bytes: Int, requests: Int = 1) {
        let admitted = state.withLock { state in
            let more = (bytes: min(bytes, state.growth.bytes), requests: min(requests, state.growth.requests))
            state.underway -= bytes
            state.pace?.note(bytes)
            state.growth.bytes -= more.bytes
            state.growth.requests -= more.requests
            state.bytes += bytes + more.bytes
            state.requests += requests + more.requests
            return state.admit()
        }
        for waiter in admitted { waiter.continuation.resume() }
    }

    /// Ends all waits.
    func end(_ error: TransferError) {
        let waiters = state.withLock { state in
            state.error = error
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(throwing: error) }
    }
}
