import Foundation

/// A date that no change of the machine's clock moves: the ages of completed sessions are counted by it.
extension Scheduler {
    /// A date of an earlier process that is so far in the past comes from a machine that did not know the date.
    private static let longestPast = 10 * 366 * 24 * 3_600.0
    /// The most time between two processes that counts. More, or less than none, comes from a clock that was wrong in one of them.
    private static let longestAbsence = 30 * 24 * 3_600.0

    /// The steady date of the opening plus the time since. Unlike the date, it never jumps, not even from one process to the next: what a machine
    /// that boots in 1970 completes has not become 50 years old when it learns the date, nor has anything when a clock is years ahead.
    func steadyDate(at now: Moment) -> Date {
        guard let opening else { return now.date }
        return opening.date + (now.uptime - opening.uptime)
    }

    mutating func noteOpening(_ now: Moment) {
        if opening == nil { opening = Moment(uptime: now.uptime, date: steadyOpening ?? now.date) }
    }

    /// Resumes the steady date of the last process.
    ///
    /// - Parameters:
    ///   - seen: The date when the store last changed.
    ///   - steady: The steady date at that time.
    mutating func load(seen: Date, steady: Date) {
        guard let present = settings.openedAt?.date else { return }
        let absence = present.timeIntervalSince(seen)
        steadyOpening = (0...Self.longestAbsence).contains(absence) ? steady.addingTimeInterval(absence) : steady
    }

    /// A date that an earlier process stored; the present one if it is in the future or too far in the past.
    func plausible(_ date: Date) -> Date {
        guard let present = steadyOpening ?? settings.openedAt?.date else { return date }
        return date > present || date < present - Self.longestPast ? present : date
    }
}
