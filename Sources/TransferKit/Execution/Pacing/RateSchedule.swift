import Foundation

/// The limits that depend on the time of the week.
struct RateSchedule: Sendable {
    private struct Entry: Sendable {
        let timetable: BandwidthTimetable
        /// The limit at times without a rule; nil for no limit.
        let stored: Int64?
    }

    private var entries: [RateLimits.Scope: Entry] = [:]
    /// The period in which the current limits apply; nil if the limits are unknown.
    private var validity: Range<Date>?

    var isEmpty: Bool { entries.isEmpty }

    mutating func set(_ timetable: BandwidthTimetable?, otherwise stored: Int64?, for scope: RateLimits.Scope) {
        guard timetable != nil || entries[scope] != nil else { return }
        entries[scope] = timetable.map { Entry(timetable: $0, stored: stored) }
        validity = nil
    }

    /// Whether the limits that ``limits(at:utcOffset:)`` returned last also apply at this date. False for a date before that call, to which the
    /// clock was set back. True if there are no timetables.
    func isCurrent(at date: Date) -> Bool { entries.isEmpty || validity?.contains(date) ?? false }

    mutating func limits(at date: Date, utcOffset: Int) -> [(scope: RateLimits.Scope, limit: Int64?)] {
        let end = entries.values.map { $0.timetable.validity(after: date, utcOffset: utcOffset) }.min()
        validity = end.map { date..<max(date, $0) }
        return entries.map { ($0.key, $0.value.timetable.limit(at: date, utcOffset: utcOffset, otherwise: $0.value.stored)) }
    }
}
