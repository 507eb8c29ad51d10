package import Foundation

/// Rate limits that depend on the day of the week and the time of day.
///
/// The first rule that includes a time determines the limit at that time. At other times, the stored rate limit applies. Times are local times on the
/// machine that runs the queue. If the local clock skips the beginning of a rule, for example for daylight saving time, the rule begins with the next
/// existing time. If the clock repeats an hour, the rules apply both times.
public struct BandwidthTimetable: Hashable, Sendable, Codable {
    /// A day of the week.
    public enum Weekday: Int, Hashable, Sendable, Codable, CaseIterable {
        /// The days in order; a week starts on Monday (ISO 8601).
        case monday, tuesday, wednesday, thursday, friday, saturday, sunday
    }

    /// The limit at certain times of certain days.
    public struct Rule: Hashable, Sendable, Codable {
        /// The days on which the rule begins; at least one.
        public var days: Set<Weekday>
        /// The minute of the day with which the rule begins: 0 to 1,439.
        public var start: Int
        /// The minute of the day before which the rule ends: 1 to 1,440. If it is not greater than ``start``, the rule ends on the next day.
        public var end: Int
        /// The limit in bytes per second, at least 1; nil for no limit.
        public var rateLimit: Int64?

        /// Creates a rule, by default for whole days.
        public init(days: Set<Weekday> = Set(Weekday.allCases), start: Int = 0, end: Int = 1_440, rateLimit: Int64?) {
            self.days = days
            self.start = start
            self.end = end
            self.rateLimit = rateLimit
        }

        fileprivate func includes(_ time: LocalTime) -> Bool {
            let minute = time.second / 60
            if start < end { return days.contains(time.weekday) && (start..<end).contains(minute) }
            return days.contains(time.weekday) && minute >= start || days.contains(time.dayBefore) && minute < end
        }
    }

    static let maximumRules = 48

    /// The rules, 1 to 48. The first rule that includes a time applies.
    public var rules: [Rule]

    /// Creates a timetable. The queue checks the rules when it stores them.
    public init(_ rules: [Rule]) { self.rules = rules }

    /// Checks the number of rules, and the days, the times and the limit of each rule.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`.
    package func validate() throws(QueueError) {
        guard (1...Self.maximumRules).contains(rules.count) else {
            throw QueueError(.invalidRequest, "A timetable must have 1 to \(Self.maximumRules) rules.")
        }
        for rule in rules {
            guard !rule.days.isEmpty, (0..<1_440).contains(rule.start), (1...1_440).contains(rule.end),
                rule.rateLimit.map({ $0 >= 1 }) ?? true
            else {
                throw QueueError(
                    .invalidRequest,
                    "A rule of a timetable needs a day, a time from 00:00 to 24:00, and a rate of at least 1 byte per second.")
            }
        }
    }

    /// The limit at a time, in bytes per second; nil for no limit.
    ///
    /// - Parameters:
    ///   - utcOffset: The seconds by which the local time is ahead of UTC at this time.
    ///   - stored: The limit if no rule includes the time.
    package func limit(at date: Date, utcOffset: Int, otherwise stored: Int64?) -> Int64? {
        let time = LocalTime(date, utcOffset: utcOffset)
        guard let rule = rules.first(where: { $0.includes(time) }) else { return stored }
        return rule.rateLimit
    }

    /// Returns a time after `date` before which the limit stays the same: the next beginning or end of a rule, the next midnight, or the next quarter
    /// of an hour, whichever comes first. The offset from UTC changes only at quarters of an hour.
    func validity(after date: Date, utcOffset: Int) -> Date {
        let second = LocalTime(date, utcOffset: utcOffset).second
        let next = rules.flatMap { [$0.start, $0.end] }.map { $0 * 60 }.filter { $0 > second }.min() ?? LocalTime.secondsPerDay
        let now = date.timeIntervalSince1970.rounded(.down)
        let quarter = ((now / 900).rounded(.down) + 1) * 900
        return Date(timeIntervalSince1970: min(now + Double(min(next, LocalTime.secondsPerDay) - second), quarter))
    }
}

private struct LocalTime {
    static let secondsPerDay = 86_400

    let weekday: BandwidthTimetable.Weekday
    let dayBefore: BandwidthTimetable.Weekday
    /// The second of the day.
    let second: Int

    init(_ date: Date, utcOffset: Int) {
        // A damaged clock must not cause an overflow.
        let seconds = Int(min(max(date.timeIntervalSince1970.rounded(.down), -1e12), 1e12)) + utcOffset
        let day = Int((Double(seconds) / Double(Self.secondsPerDay)).rounded(.down))
        second = seconds - day * Self.secondsPerDay
        // 1 January 1970 was a Thursday.
        let number = (day % 7 + 7 + 3) % 7
        let days = BandwidthTimetable.Weekday.allCases
        (weekday, dayBefore) = (days[number], days[(number + 6) % 7])
    }
}
