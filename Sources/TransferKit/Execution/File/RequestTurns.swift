import Locking
import TransferCore

/// Limits the number of files of a session that make requests concurrently. Further prepared files wait for their turn.
///
/// A file waits for its turn only when its transport saves the first checkpoint. This machine can therefore prepare files while other files
/// wait for responses.
package final class RequestTurns: Sendable {
    private struct State: Sendable {
        var limit = Int.max
        /// The positions of the files whose turn it is.
        var active: Set<Int64> = []
        var waiting: [Int: (position: Int64, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var nextTicket = 0

        /// Gives turns to waiting files in the order of the session, as far as the limit allows. Returns their continuations.
        mutating func admit() -> [CheckedContinuation<Void, any Error>] {
            guard !waiting.isEmpty else { return [] }
            var admitted: [CheckedContinuation<Void, any Error>] = []
            for (ticket, waiter) in waiting.sorted(by: { ($0.value.position, $0.key) < ($1.value.position, $1.key) }) {
                guard tryToGiveTurn(to: waiter.position) else { break }
                waiting[ticket] = nil
                admitted.append(waiter.continuation)
            }
            return admitted
        }

        /// Gives a file its turn if the limit allows it. Returns whether the file has its turn.
        mutating func tryToGiveTurn(to position: Int64) -> Bool {
            guard active.contains(position) || active.count < limit else { return false }
            active.insert(position)
            return true
        }
    }

    private let state = Locked(State())

    package init() {}

    /// Sets the maximum number of files that may have a turn at the same time.
    package func setLimit(_ limit: Int) {
        let admitted = state.withLock { state in
            state.limit = limit
            return state.admit()
        }
        for continuation in admitted { continuation.resume() }
    }

    /// Waits for a file's turn, which lasts until ``end(_:)`` is called.
    ///
    /// - Throws: `CancellationError`.
    package func wait(for position: Int64) async throws {
        guard !state.withLock({ $0.tryToGiveTurn(to: position) }) else { return }
        let ticket = state.withLock { state in
            state.nextTicket += 1
            return state.nextTicket
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let decided: Result<Void, any Error>? = state.withLock { state in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.tryToGiveTurn(to: position) { return .success(()) }
                    state.waiting[ticket] = (position, continuation)
                    return nil
                }
                if let decided { continuation.resume(with: decided) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: ticket) }?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Ends the turn of a file whose attempt is over.
    package func end(_ position: Int64) {
        let admitted = state.withLock { state in
            state.active.remove(position)
            return state.admit()
        }
        for continuation in admitted { continuation.resume() }
    }

    /// Whether a file waits for its turn.
    package func isWaitingForTurn(_ position: Int64) -> Bool {
        state.withLock { state in state.waiting.values.contains { $0.position == position } }
    }
}
