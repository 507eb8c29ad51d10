import Locking
import TransferCore

/// Runs one task for all callers that request the same result at the same time.
///
/// When all callers of a task are cancelled, the task is cancelled.
package final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Flight {
        let number: Int
        var task: Task<Void, Never>?
        var waiters: [Int: CheckedContinuation<Value, any Error>] = [:]
    }

    private struct State {
        var flights: [Key: Flight] = [:]
        var lastNumber = 0

        mutating func nextNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }
    }

    private let state = Locked(State())

    package init() {}

    /// Returns the result of the task for a key. Starts the task if it is not running.
    ///
    /// - Throws: The task's error. If the caller's task is cancelled, throws `CancellationError` immediately.
    package func value(for key: Key, _ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let isCancelled = Locked(false)
        let waiter = state.withLock { $0.nextNumber() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                join(key, waiter, continuation, unless: isCancelled, work)
            }
        } onCancel: {
            isCancelled.withLock { $0 = true }
            leave(key, waiter)
        }
    }

    private func join(
        _ key: Key, _ waiter: Int, _ continuation: CheckedContinuation<Value, any Error>, unless isCancelled: Locked<Bool>,
        _ work: @escaping @Sendable () async throws -> Value
    ) {
        let hasJoined = state.withLock { state in
            // `onCancel` sets this flag before `leave` acquires the lock of `state`. If this check misses a cancellation, `leave` therefore runs
            // after the waiter was added, and finds the waiter.
            guard !isCancelled.withLock({ $0 }) else { return false }
            if state.flights[key] == nil {
                let number = state.nextNumber()
                state.flights[key] = Flight(number: number, task: Task { await self.run(key, number, work) })
            }
            state.flights[key]?.waiters[waiter] = continuation
            return true
        }
        if !hasJoined { continuation.resume(throwing: CancellationError()) }
    }

    /// Removes a cancelled waiter. Cancels the task if it has no other waiter.
    private func leave(_ key: Key, _ waiter: Int) {
        let (continuation, abandoned) = state.withLock { state in
            guard let continuation = state.flights[key]?.waiters.removeValue(forKey: waiter) else {
                return (nil, nil) as (CheckedContinuation<Value, any Error>?, Task<Void, Never>?)
            }
            guard state.flights[key]?.waiters.isEmpty == true else { return (continuation, nil) }
            return (continuation, state.flights.removeValue(forKey: key)?.task)
        }
        abandoned?.cancel()
        continuation?.resume(throwing: CancellationError())
    }

    private func run(_ key: Key, _ number: Int, _ work: @Sendable () async throws -> Value) async {
        let result: Result<Value, any Error>
        do { result = .success(try await work()) } catch { result = .failure(error) }
        let waiters = state.withLock { state in
            state.flights[key]?.number == number ? state.flights.removeValue(forKey: key)?.waiters : nil
        }
        for continuation in (waiters ?? [:]).values { continuation.resume(with: result) }
    }
}
