import Locking
import TransferCore

/// A condition that becomes true once and then stays true. Tasks can wait for the condition; cancellation ends the wait.
package final class Latch: Sendable {
    private let state = Locked(State())

    private struct State {
        var isOpen = false
        var waiting: [ObjectIdentifier: SingleResult<Void>] = [:]
    }

    var isOpen: Bool { state.withLock { $0.isOpen } }

    package init() {}

    package func open() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            state.isOpen = true
            return state.waiting.values
        }
        for opening in waiting { opening.resume(.success(())) }
    }

    /// Waits until the latch is open.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first.
    package func wait() async throws {
        let opening = SingleResult<Void>()
        let mustWait = state.withLock { state in
            guard !state.isOpen else { return false }
            state.waiting[ObjectIdentifier(opening)] = opening
            return true
        }
        guard mustWait else { return }
        try await opening.valueUnlessCancelled { [state] in state.withLock { $0.waiting[ObjectIdentifier(opening)] = nil } }
    }
}
