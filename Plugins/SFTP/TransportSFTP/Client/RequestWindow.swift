import Locking
import TransferCore

/// Limits the bytes and requests in flight. Waiting callers resume in the order of their arrival.
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
        /// The numbers of bytes and requests by which the window can still grow.
        var growth: (bytes: Int, requests: Int)
        var inFlight = 0
        /// The pace that limits the use of the window; nil to use the whole window.
        var pace: RequestPace?
        var waiters: [Waiter] = []
        var lastNumber = 0
        var error: TransferError?

        /// Removes and returns the waiters that can continue.
        mutating func admit() -> [Waiter] {
            var admitted = 0
            let limit = pace?.limit ?? .max
            while admitted < waiters.count, waiters[admitted].bytes <= bytes, waiters[admitted].requests <= requests,
                inFlight == 0 || inFlight + waiters[admitted].bytes <= limit
            {
                inFlight += waiters[admitted].bytes
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
    ///   - bytes: The initial maximum number of bytes in flight.
    ///   - requests: The initial maximum number of requests in flight.
    ///   - growth: The maximum numbers of bytes and requests by which the window grows while it is used.
    ///   - pace: Limits the use of the window; nil to use the whole window.
    package init(bytes: Int, requests: Int, growth: (bytes: Int, requests: Int) = (0, 0), pace: RequestPace? = nil) {
        state = Locked(State(bytes: bytes, requests: requests, growth: growth, pace: pace))
    }

    package var inFlight: Int { state.withLock { $0.inFlight } }

    /// Waits until the window has room for the given bytes and requests. Release them with ``release(bytes:requests:)``.
    ///
    /// - Throws: The error that ended the channel, or `CancellationError`.
    package func acquire(bytes: Int, requests: Int = 1) async throws {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (admitted, error) = state.withLock { state -> ([Waiter], (any Error)?) in
                    if let error = state.error { return ([], error) }
                    // If the task was cancelled before this check, the handler below found no waiter to remove.
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

    /// Releases acquired bytes and requests. The window grows by the same numbers, up to its maximum.
    package func release(bytes: Int, requests: Int = 1) {
        let admitted = state.withLock { state in
            let more = (bytes: min(bytes, state.growth.bytes), requests: min(requests, state.growth.requests))
            state.inFlight -= bytes
            state.pace?.count(bytes)
            state.growth.bytes -= more.bytes
            state.growth.requests -= more.requests
            state.bytes += bytes + more.bytes
            state.requests += requests + more.requests
            return state.admit()
        }
        for waiter in admitted { waiter.continuation.resume() }
    }

    /// Fails all current and later calls to ``acquire(bytes:requests:)`` with an error.
    func end(_ error: TransferError) {
        let waiters = state.withLock { state in
            state.error = error
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(throwing: error) }
    }
}
