import TransferKit

extension ReferenceQueue {
    /// Handles an event, and then starts the sessions that can start.
    mutating func step(_ event: ModelEvent, at now: DualInstant) -> Outcome {
        started = []
        stopRequested = []
        var outcome = Outcome()
        do throws(QueueError) {
            outcome.result = try handle(event, at: now)
        } catch {
            outcome.code = error.code
        }
        schedule(at: now)
        outcome.started = started
        outcome.stopRequested = stopRequested
        return outcome
    }

    /// Returns the visible state at a time.
    ///
    /// - Parameter withReasons: Whether to determine why sessions wait, which takes most of the time.
    func observation(at now: DualInstant, withReasons: Bool = true) -> Observation {
        var queue = self
        queue.now = now
        return Observation(
            mode: mode.rawValue, isIdle: queue.isIdle, orderRevision: orderRevision,
            sessions: sessions.map { session in
                Observation.Session(
                    id: session.id, state: session.shownState, target: session.state, isEnding: session.isEnding,
                    holdsSlot: session.holdsSlot, hasRun: session.run != nil, why: withReasons ? queue.why(session) : nil)
            },
            runs: accountsOfRuns.reduce(into: [:]) { $0[account($1)?.account.name ?? "", default: 0] += 1 })
    }
}
