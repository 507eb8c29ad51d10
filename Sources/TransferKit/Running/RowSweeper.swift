import Locking
import Logging
import TransferCore

/// Works off the rows of large sessions that are out of the queue, piece by piece, while the queue goes on.
package final class RowSweeper: Sendable {
    private struct State: Sendable {
        var isClosed = false
        /// Whether there may be rows.
        var isDue = false
        var worker: Task<Void, Never>?
    }

    private static let retryDelay = Duration.seconds(30)

    private let store: QueueStore
    private let clock: EngineClock
    private let logger: Logger
    private let state = Locked(State())

    init(store: QueueStore, clock: EngineClock, logger: Logger) {
        self.store = store
        self.clock = clock
        self.logger = logger
    }

    /// There are rows.
    func look() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isDue = true
            if state.worker == nil { state.worker = Task { await work() } }
        }
    }

    /// Returns once no row is left, or none that can be worked off.
    package func waitUntilDone() async {
        await state.withLock { $0.worker }?.value
    }

    /// Ends; what is left is worked off after the next opening.
    func shutdown() async {
        let worker = state.withLock { state in
            state.isClosed = true
            state.worker?.cancel()
            return state.worker
        }
        await worker?.value
    }

    /// Whether to look at the store; otherwise the work is over.
    private func begin() -> Bool {
        state.withLock { state in
            guard state.isDue, !state.isClosed else {
                state.worker = nil
                return false
            }
            state.isDue = false
            return true
        }
    }

    private func work() async {
        var skipped: Set<SessionKey> = []
        while begin() {
            do throws(SweepFailure) {
                while try await store.sweep(leavingOut: skipped) {}
                do throws(QueueError) {
                    while try await store.trim() {}
                    try await store.finishResets()
                } catch {
                    throw SweepFailure(session: nil, isLasting: false, error: error)
                }
            } catch {
                state.withLock { $0.isDue = true }
                guard !Task.isCancelled else { continue }
                logger.error("Rows of a session that was removed can't be deleted. \(error.error.message)")
                if error.isLasting, let session = error.session {
                    skipped.insert(session)
                } else {
                    try? await clock.sleep(Self.retryDelay)
                }
            }
        }
    }
}
