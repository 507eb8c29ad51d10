import Locking
import TransferCore

/// A condition that becomes true once and then stays true. Tasks can wait for the condition; cancellation ends the wait.
package final class Latch: Sendable {
    private let state = Locked(State())

    private struct State {
        var isOpen = false
        var nextID = 0
        var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
    }

    var isOpen: Bool { state.withLock { $0.isOpen } }

    package init() {}

    package func open() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            state.isOpen = true
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits until the latch is open.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first.
    package func wait() async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = state.withLock { state in
                    // The cancellation handler below may already have run.
                    guard !state.isOpen, !Task.isCancelled else { return true }
                    state.waiting[id] = continuation
                    return false
                }
                if isOver { continuation.resume(with: Result { if !isOpen { throw CancellationError() } }) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: id) }?.resume(throwing: CancellationError())
        }
    }
}
