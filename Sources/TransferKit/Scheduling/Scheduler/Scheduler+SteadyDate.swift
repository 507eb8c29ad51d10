import Foundation

/// A date that is independent of changes to the machine's clock. Determines the ages of completed sessions, and when deadlines pass.
extension Scheduler {
    /// The largest plausible age, in seconds, of a date that an earlier process stored. If a date is older, the machine's clock was not set when the
    /// date was stored.
    private static let longestPast = 10 * 366 * 24 * 3_600.0
    /// The longest plausible time between two processes, in seconds. If the time is longer or negative, the clock was wrong in one of the processes,
    /// and the time is ignored.
    private static let longestAbsence = 30 * 24 * 3_600.0

    /// The steady date at which the queue was opened, plus the uptime since then.
    ///
    /// Unlike the clock's date, the steady date never jumps within a process, and advances by at most ``longestAbsence`` between two
    /// processes. A session that completes while the clock shows 1970 does not become 50 years old when the clock is set. No session expires
    /// early because a clock is years ahead.
    func steadyDate(at now: DualInstant) -> Date {
        guard let opening else { return now.date }
        return opening.date + (now.uptime - opening.uptime)
    }

    mutating func recordOpening(_ now: DualInstant) {
        if opening == nil { opening = DualInstant(uptime: now.uptime, date: steadyOpening ?? now.date) }
    }

    /// Resumes the steady date of the last process.
    ///
    /// - Parameters:
    ///   - seen: The date of the clock when both dates were last stored.
    ///   - steady: The steady date when both dates were last stored.
    mutating func load(seen: Date, steady: Date) {
        guard let present = settings.openedAt?.date else { return }
        let absence = present.timeIntervalSince(seen)
        steadyOpening = (0...Self.longestAbsence).contains(absence) ? steady.addingTimeInterval(absence) : steady
    }

    /// Returns a date that an earlier process stored, or the steady date at which the queue was opened if the stored date is in the future or
    /// too far in the past.
    func plausible(_ date: Date) -> Date {
        guard let present = steadyOpening ?? settings.openedAt?.date else { return date }
        return date > present || date < present - Self.longestPast ? present : date
    }
}
