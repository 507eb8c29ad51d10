import Foundation
import TransferKit

/// A difference between a scheduler and a ``ReferenceQueue``, or an error in the scheduler's state or events.
struct Disagreement: Error, CustomStringConvertible {
    var step: Int
    var problem: String
    var description: String { "step \(step): \(problem)" }
}

/// A scheduler and a ``ReferenceQueue`` that receive the same inputs and are compared after each step.
struct ModelRun {
    private(set) var scheduler: ModelledScheduler
    private(set) var reference: ReferenceQueue
    private(set) var now = DualInstant.start
    private var grammar = EventGrammar()
    private var number = 0
    /// The scheduler's state after the last step.
    private var shown: Observation

    init(_ settings: ModelSequence.Settings) {
        scheduler = ModelledScheduler(settings.scheduler)
        reference = ReferenceQueue(settings.scheduler)
        shown = scheduler.observation(at: now)
    }

    /// Plays a recorded sequence, and then runs all sessions to their end. Throws at the first disagreement.
    static func play(_ sequence: ModelSequence) throws(Disagreement) {
        var run = ModelRun(sequence.settings)
        for step in sequence.steps { try run.play(step) }
        try run.runToEnd()
    }

    mutating func play(_ step: ModelStep) throws(Disagreement) {
        number += 1
        try advance(.seconds(step.wait))
        switch step.kind {
        case .event(let event): try handle(event)
        case .clock(let seconds): try setClock(by: seconds)
        case .restart:
            scheduler.restart()
            reference = reference.restarted()
            shown = scheduler.observation(at: now)
            grammar.restart(shown)
            try compare(shown)
        case .undo(let events):
            if let problem = scheduler.tryAndUndo(events, at: now) { throw disagreement("undo: \(problem)") }
        }
    }

    /// Passes an event to the scheduler and to the reference queue, and compares the two. Also checks the scheduler's state and events.
    @discardableResult
    mutating func handle(_ event: ModelEvent) throws(Disagreement) -> Outcome {
        let outcome = scheduler.step(event, at: now)
        let expected = reference.step(event, at: now)
        if let problem = outcome.difference(from: expected) { throw disagreement("\(event): \(problem)") }
        let before = shown
        let after = scheduler.observation(at: now)
        try compare(after, after: event)
        shown = after
        if let problem = scheduler.remainingError(at: now) { throw disagreement("\(event): \(problem)") }
        if let problem = scheduler.remoteError { throw disagreement("\(event): \(problem)") }
        if let problem = Invariants.firstViolation(before: before, after: after, outcome: outcome, event: event, limits: scheduler.limits) {
            throw disagreement("\(event): \(problem)")
        }
        if let problem = grammar.check(scheduler.lastEvents, after) { throw disagreement("\(event): events: \(problem)") }
        return outcome
    }

    /// Sets the date forward or back. The date may jump at any time, so while anything depends on the date, the scheduler must wake at
    /// least once a minute.
    private mutating func setClock(by seconds: Int) throws(Disagreement) {
        if reference.dependsOnDate {
            guard let due = scheduler.nextDue(after: now), due <= now.uptime + .seconds(60) else {
                throw disagreement("the scheduler would not notice within a minute that the clock was set")
            }
        }
        now = DualInstant(uptime: now.uptime, date: now.date + Double(seconds))
        try handle(.tick)
    }

    /// Advances the time, and wakes the scheduler at the times that it requests. Nothing may become due before these times.
    private mutating func advance(_ duration: Duration) throws(Disagreement) {
        let later = now + duration
        var wakings = 0
        while let due = scheduler.nextDue(after: now), due <= later.uptime {
            wakings = due > now.uptime ? 0 : wakings + 1
            guard wakings < 3 else { throw disagreement("the scheduler repeatedly requests to be woken at \(due)") }
            if due > now.uptime { try sleep(until: now + (due - now.uptime), .milliseconds(5)) }
            try handle(.tick)
        }
        try sleep(until: later, .zero)
    }

    /// Advances the time to `later` without waking the scheduler. Nothing may become due earlier than `margin` before `later`.
    private mutating func sleep(until later: DualInstant, _ margin: Duration) throws(Disagreement) {
        var unattended = reference
        let outcome = unattended.step(.tick, at: DualInstant(uptime: later.uptime - margin, date: later.date + (.zero - margin).inSeconds))
        var shown = unattended.observation(at: later, withReasons: false)
        let expected = reference.observation(at: now, withReasons: false)
        // Time alone may change `isIdle`, because a session may lose its chance to start automatically.
        shown.isIdle = expected.isIdle
        guard outcome.started.isEmpty, outcome.stopRequested.isEmpty, shown == expected else {
            throw disagreement("the scheduler sleeps, and misses a change that is due by \(later.uptime): \(shown.line)")
        }
        now = later
    }

    private func compare(_ shown: Observation, after event: ModelEvent? = nil) throws(Disagreement) {
        let expected = reference.observation(at: now)
        if let problem = shown.difference(from: expected) {
            throw disagreement("\(event.map { "\($0): " } ?? "")\(problem)\n  have: \(shown.line)\n  want: \(expected.line)")
        }
    }

    private func disagreement(_ problem: String) -> Disagreement { Disagreement(step: number, problem: problem) }
}

extension ModelRun {
    /// Issues the commands that let sessions continue, completes all runs and advances the time. Afterwards, each unfinished session must
    /// wait for another session.
    mutating func runToEnd() throws(Disagreement) {
        number += 1
        for name in reference.accounts.map(\.account.name) {
            try handle(.command(.saveAccount(.memory(name))))
        }
        try handle(.command(.start))
        try handle(.command(.setNetwork(.unconstrained)))
        try handle(.disk(free: .max))
        // This jump is larger than the total time by which the generated steps set the clock back, except in extremely unlikely sequences.
        try setClock(by: 100_000)
        try handle(.command(.perform(.enqueue(), .group(.state(.draft)))))
        for _ in 0..<(40 + 4 * reference.sessions.count) {
            try handle(.command(.perform(.release, .group(.all))))
            try handle(.command(.perform(.resume, .group(.all))))
            for id in reference.leftovers.map(\.id) + reference.sessions.filter({ $0.run != nil }).map(\.id) {
                try handle(.report(id, runsAgo: 0, .ended(.finished(failure: nil, ignoresNewFiles: false))))
            }
            if let due = scheduler.nextDue(after: now) {
                try advance(due - now.uptime)
            } else if !shown.sessions.contains(where: \.hasRun) {
                break
            }
        }
        for session in scheduler.observation(at: now).sessions where !session.state.isEnded && session.state != .draft {
            switch session.why {
            case .after(_, .draft), .after(_, .failed), .after(_, .cancelled): continue
            case .after, .strictOrder: continue
            default: throw disagreement("stuck: \(session.line), \(session.whyLine)")
            }
        }
    }
}
