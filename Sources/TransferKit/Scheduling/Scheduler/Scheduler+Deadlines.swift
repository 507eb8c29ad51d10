import Foundation
import TransferCore

/// Deadlines of sessions; see ``SessionOptions/deadline``.
extension Scheduler {
    private var enforcesDeadlines: Bool { flags.mode == .running || flags.mode == .draining }

    /// Fails the sessions whose deadlines have passed. If a session has a run, first interrupts the run; the session then fails when the run has
    /// ended or was abandoned. A paused or held session fails only after the app has resumed or released it.
    mutating func enforceDeadlines(at now: DualInstant, _ transaction: inout Transaction) {
        guard enforcesDeadlines else { return }
        let present = steadyDate(at: now).milliseconds
        var passed = 0
        while let first = sessionIndex.deadlines.first, first.due <= present, passed < Self.maximumPerTransaction {
            _ = sessionIndex.deadlines.popFirst()
            passed += 1
            guard sessionIndex.details(first.key).deadlineEnd == first.due else { continue }
            mutate(first.key) { _, details in details.isOverdue = true }
        }
        for key in sessionIndex.overdue.sorted() {
            guard let entry = sessionIndex[key] else { continue }
            if sessionIndex.details(key).run == 0 {
                failOverdue(entry, wasActive: entry.holdsSlot, at: now, &transaction)
            } else if !entry.conditions.contains(.stopping) {
                requestStop(key, &transaction) { entry, _ in
                    entry.state = .waiting
                    // If the deadline is extended before the run has ended, the session starts again before the sessions in queue order.
                    entry.startPriority = min(entry.startPriority, .interrupted)
                }
            }
        }
    }

    mutating func failOverdue(_ entry: Entry, wasActive: Bool, at now: DualInstant, _ transaction: inout Transaction) {
        let deadline = sessionIndex.details(entry.key).deadline ?? .zero
        finish(entry.key, SessionOptions.exceeded(deadline), wasActive: wasActive, keepsStart: true, at: now, &transaction)
    }

    /// Whether a session must fail as soon as it has no run, because its deadline has passed.
    func isOverdue(_ entry: Entry) -> Bool { enforcesDeadlines && sessionIndex.overdue.contains(entry.key) }

    /// The uptime at which the next deadline passes; nil if no started session has a deadline in the future, or if deadlines are not
    /// enforced now.
    func nextDeadline(after now: DualInstant) -> Duration? {
        guard enforcesDeadlines, let first = sessionIndex.deadlines.first else { return nil }
        return now.uptime + .milliseconds(first.due - steadyDate(at: now).milliseconds)
    }
}
