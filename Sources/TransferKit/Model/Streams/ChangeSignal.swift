import Locking
import TransferCore

/// Wakes tasks that wait for a change. Each task then checks its condition again.
final class ChangeSignal: Sendable {
    private struct State: Sendable {
        var version = 0
        var nextID = 0
        var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
    }

    private let state = Locked(State())

    /// The number of changes. A task must read this number before the task checks its condition. Otherwise, it could miss a change after the check.
    var version: Int { state.withLock { $0.version } }

    /// Reports a change.
    func send() {
        let waiting = state.withLock { state in
            state.version += 1
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits for a change after the given version. Returns immediately if the version is no longer current.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before the change.
    func wait(after version: Int) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = state.withLock { state in
                    // The cancellation handler below may already have run.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.version != version { return .success(()) }
                    state.waiting[id] = continuation
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: id) }?.resume(throwing: CancellationError())
        }
    }
}
