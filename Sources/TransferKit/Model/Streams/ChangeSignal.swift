import Locking
import TransferCore

/// Wakes tasks that wait for a change. Each task then checks its condition again.
package final class ChangeSignal: Sendable {
    private struct State: Sendable {
        var version = 0
        var waiting: [ObjectIdentifier: SingleResult<Void>] = [:]
    }

    private let state = Locked(State())

    package init() {}

    /// The number of changes. A task must read this number before the task checks its condition. Otherwise, it could miss a change after the check.
    package var version: Int { state.withLock { $0.version } }

    /// Reports a change.
    package func send() {
        let waiting = state.withLock { state in
            state.version += 1
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for change in waiting { change.resume(.success(())) }
    }

    /// Waits for a change after the given version. Returns immediately if the version is no longer current.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before the call or during the wait.
    package func wait(after version: Int) async throws {
        try Task.checkCancellation()
        let change = SingleResult<Void>()
        let mustWait = state.withLock { state in
            guard state.version == version else { return false }
            state.waiting[ObjectIdentifier(change)] = change
            return true
        }
        guard mustWait else { return }
        try await change.valueUnlessCancelled { [state] in state.withLock { $0.waiting[ObjectIdentifier(change)] = nil } }
    }
}
