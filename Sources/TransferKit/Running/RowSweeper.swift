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
    private let tell: @Sendable (String) -> Void
    private let state = Locked(State())

    /// - Parameter tell: Takes a sentence about what was deleted because the store had reached a limit.
    init(store: QueueStore, clock: EngineClock, logger: Logger, tell: @escaping @Sendable (String) -> Void) {
        self.tell = tell
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

    private func trim() async throws(QueueError) {
        let counts = Locked((sessions: 0, removals: 0))
        while try await store.trim(
            StoreLimits(),
            { [logger] trimmed in
                for reason in trimmed.sessions {
                    logger.error("The oldest session in quarantine was deleted, as there are too many. It had been set aside: \(reason)")
                }
                counts.withLock {
                    $0.sessions += trimmed.sessions.count
                    $0.removals += trimmed.removals
                }
            })
        {}
        let (sessions, removals) = counts.withLock { $0 }
        if sessions > 0 { tell("\(sessions) of the oldest sessions in quarantine were deleted, as there were too many.") }
        guard removals > 0 else { return }
        let sentence =
            "\(removals) of the oldest removals at servers were given up, as there were too many. What is there is left to expire."
        logger.warning("\(sentence)")
        tell(sentence)
    }

    private func work() async {
        var skipped: Set<SessionKey> = []
        while begin() {
            do throws(SweepFailure) {
                while try await store.sweep(leavingOut: skipped) {}
                do throws(QueueError) {
                    try await trim()
                    try await store.finishResets()
                    try await store.finishDiscards()
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
