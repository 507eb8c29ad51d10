import Locking
import Logging
import TransferCore

/// Deletes the rows of large removed sessions in batches, while the queue continues to run. Also moves the rows of large quarantined sessions into
/// quarantine, completes the resets of large sessions, finishes moving checkpoints into the discard outbox (``DiscardOutbox``), and enforces
/// ``StoreLimits``.
package final class DeferredDeletion: Sendable {
    private struct State: Sendable {
        var isClosed = false
        /// Whether there may be work, so that the worker must begin another round.
        var isDue = false
        var worker: Task<Void, Never>?
    }

    private static let retryDelay = Duration.seconds(30)

    private let store: QueueStore
    private let clock: EngineClock
    private let logger: Logger
    private let discardsMayBeDue: @Sendable () -> Void
    private let report: @Sendable (String) -> Void
    private let state = Locked(State())

    /// Prepares the deletion. ``wake()`` starts it.
    ///
    /// - Parameters:
    ///   - discardsMayBeDue: Called when a round may have added removals to the discard outbox.
    ///   - report: Receives a message for the user if rows were deleted because the database had exceeded a limit.
    init(
        store: QueueStore, clock: EngineClock, logger: Logger, discardsMayBeDue: @escaping @Sendable () -> Void,
        report: @escaping @Sendable (String) -> Void
    ) {
        self.discardsMayBeDue = discardsMayBeDue
        self.report = report
        self.store = store
        self.clock = clock
        self.logger = logger
    }

    /// Starts the deletion, unless it is already running. Call this method after work may have been added.
    func wake() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isDue = true
            if state.worker == nil { state.worker = Task { await work() } }
        }
    }

    /// Waits until no deferred work is left. Does not wait for sessions whose deletion fails permanently.
    package func waitUntilDone() async {
        await state.withLock { $0.worker }?.value
    }

    /// Stops the deletion. The next opening of the queue resumes the deletion.
    func shutdown() async {
        let worker = state.withLock { state in
            state.isClosed = true
            state.worker?.cancel()
            return state.worker
        }
        await worker?.value
    }

    /// Begins another round if one is due; otherwise marks the worker as ended. Returns whether a round began.
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

    /// Enforces the limits of the database: deletes the oldest sessions in quarantine if there are too many, and likewise the oldest pending
    /// removals in the discard outbox.
    ///
    /// - Returns: Whether quarantined sessions were deleted. If so, their rows in other tables can now be deleted.
    private func trim() async throws(QueueError) -> Bool {
        let counts = Locked((sessions: 0, removals: 0))
        // Report the deletions even if a later batch fails.
        defer { reportTrimmed(counts.withLock { $0 }) }
        while try await store.trim(
            StoreLimits(),
            { [logger] trimmed in
                for reason in trimmed.sessions {
                    logger.error("Deleted the oldest session in quarantine, because there are too many. \(reason)")
                }
                counts.withLock {
                    $0.sessions += trimmed.sessions.count
                    $0.removals += trimmed.removals
                }
            })
        {}
        return counts.withLock { $0.sessions } > 0
    }

    private func reportTrimmed(_ deleted: (sessions: Int, removals: Int)) {
        if deleted.sessions > 0 {
            report("\(deleted.sessions) of the oldest sessions in quarantine were deleted because there were too many.")
        }
        guard deleted.removals > 0 else { return }
        let sentence =
            "\(deleted.removals) of the oldest pending removals of remote content were abandoned because there were too many. "
            + "The content stays on the servers."
        logger.warning("\(sentence)")
        report(sentence)
    }

    private func work() async {
        var skipped: Set<SessionKey> = []
        while begin() {
            do throws(SweepFailure) {
                while try await store.sweep(leavingOut: skipped) {}
                do throws(QueueError) {
                    // Runs even if one of the following steps fails, because that step may already have added removals.
                    defer { discardsMayBeDue() }
                    if try await trim() { state.withLock { $0.isDue = true } }
                    try await store.finishMarked()
                } catch {
                    throw SweepFailure(session: nil, isPermanent: false, error: error)
                }
            } catch {
                state.withLock { $0.isDue = true }
                guard !Task.isCancelled else { continue }
                logger.error("Cannot complete deferred deletions. \(error.error.message)")
                if error.isPermanent, let session = error.session {
                    skipped.insert(session)
                } else {
                    try? await clock.sleep(Self.retryDelay)
                }
            }
        }
    }
}
