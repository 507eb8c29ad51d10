import TransferKit

extension ReferenceQueue {
    /// Handles an event and what may start because of it.
    mutating func step(_ event: ModelEvent, at now: Moment) -> Outcome {
        started = []
        toldToEnd = []
        var outcome = Outcome()
        do throws(QueueError) {
            outcome.answer = try handle(event, at: now)
        } catch {
            outcome.code = error.code
        }
        schedule(at: now)
        outcome.started = started
        outcome.toldToEnd = toldToEnd
        return outcome
    }

    func observation(at now: Moment) -> Observation {
        var queue = self
        queue.now = now
        return Observation(
            mode: mode.rawValue, isIdle: queue.isIdle, orderRevision: orderRevision,
            sessions: sessions.map { session in
                Observation.Session(
                    id: session.id, state: session.shownState, target: session.state, isEnding: session.isEnding,
                    holdsSlot: session.holdsSlot, hasRun: session.run != nil, why: queue.why(session))
            })
    }
}
