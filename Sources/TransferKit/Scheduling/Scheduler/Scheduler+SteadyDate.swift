import Foundation

/// A date that is independent of changes of the machine's clock, for the ages of completed sessions.
extension Scheduler {
    /// The largest plausible age, in seconds, of a date that an earlier process stored. An older date comes from a machine with an unset
    /// clock.
    private static let longestPast = 10 * 366 * 24 * 3_600.0
    /// The longest time between two processes that counts, in seconds. A longer or negative time comes from a clock that was wrong in one of the
    /// processes.
    private static let longestAbsence = 30 * 24 * 3_600.0

    /// The steady date of the opening plus the uptime since the opening.
    ///
    /// Unlike the clock's date, the steady date never jumps, not even between processes. A session that completes while the clock shows 1970 is not
    /// 50 years old once the clock is set. No session ages early while a clock is years ahead.
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
    ///   - seen: The date when the store last recorded the clock.
    ///   - steady: The steady date at that time.
    mutating func load(seen: Date, steady: Date) {
        guard let present = settings.openedAt?.date else { return }
        let absence = present.timeIntervalSince(seen)
        steadyOpening = (0...Self.longestAbsence).contains(absence) ? steady.addingTimeInterval(absence) : steady
    }

    /// A date that an earlier process stored; the current date if the stored date is in the future or too far in the past.
    func plausible(_ date: Date) -> Date {
        guard let present = steadyOpening ?? settings.openedAt?.date else { return date }
        return date > present || date < present - Self.longestPast ? present : date
    }
}
