package import TransferKit

/// The error for a text that is not a timetable.
package struct TimetableError: Error {
    /// A human-readable message.
    package let message: String
}

extension BandwidthTimetable {
    private static let dayNames = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

    /// Parses rules such as `mon-fri 08:00-18:00 2M; * off`: the days, the time of day, and the rate in bytes per second. Without a time, a
    /// rule applies to whole days.
    package init(parsing text: String) throws(TimetableError) {
        self.init([])
        for rule in text.split(separator: ";") {
            let words = rule.split(whereSeparator: \.isWhitespace)
            guard (2...3).contains(words.count) else { throw Self.error(rule, "write days, optionally a time, and a rate") }
            guard let days = Self.days(words[0]) else { throw Self.error(rule, "the days must be *, or for example mon-fri or sat,sun") }
            var times = (start: 0, end: 1_440)
            if words.count == 3 {
                guard let given = Self.times(words[1]) else { throw Self.error(rule, "the time must have the format 08:00-18:00") }
                times = given
            }
            guard let rate = words.last == "off" ? .some(nil) : ByteCount(String(words[words.count - 1])).map(\.limit) else {
                throw Self.error(rule, "the rate must be bytes per second, such as 500K or 2M, or off for no limit")
            }
            rules.append(Rule(days: days, start: times.start, end: times.end, rateLimit: rate))
        }
        do {
            try validate()
        } catch {
            throw TimetableError(message: error.message)
        }
    }

    private static func error(_ rule: Substring, _ problem: String) -> TimetableError {
        TimetableError(message: "\"\(rule.trimmed)\" is not a rule of a timetable: \(problem). Example: mon-fri 08:00-18:00 2M; * off")
    }

    private static func days(_ text: Substring) -> Set<Weekday>? {
        if text == "*" { return Set(Weekday.allCases) }
        var days: Set<Weekday> = []
        for range in text.lowercased().split(separator: ",", omittingEmptySubsequences: false) {
            let ends = range.split(separator: "-", omittingEmptySubsequences: false).map { name in dayNames.firstIndex { $0 == name } }
            guard ends.count <= 2, let first = ends[0], let last = ends[ends.count - 1] else { return nil }
            // A range can contain the end of the week, such as sat-mon.
            for offset in 0...(last - first + 7) % 7 { days.insert(Weekday.allCases[(first + offset) % 7]) }
        }
        return days
    }

    private static func times(_ text: Substring) -> (start: Int, end: Int)? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map(minute)
        guard ends.count == 2, let start = ends[0], let end = ends[1], start < 1_440 else { return nil }
        // As the end of a range, 00:00 means the end of the day.
        return (start, end == 0 ? 1_440 : end)
    }

    /// Parses a time of day, and returns the number of minutes since midnight.
    private static func minute(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ (1...2).contains($0.count) && $0.allSatisfy { ("0"..."9").contains($0) } }),
            let hour = Int(parts[0]), let minute = Int(parts[1]), minute < 60, hour * 60 + minute <= 1_440
        else { return nil }
        return hour * 60 + minute
    }

    /// The rules as text that ``init(parsing:)`` can parse.
    package var text: String {
        rules.map { rule in
            let times = rule.start == 0 && rule.end == 1_440 ? nil : "\(Self.text(minute: rule.start))-\(Self.text(minute: rule.end))"
            return [Self.text(rule.days), times, rule.rateLimit.map(Self.text(rate:)) ?? "off"].compactMap(\.self).joined(separator: " ")
        }.joined(separator: "; ")
    }

    private static func text(_ days: Set<Weekday>) -> String {
        guard days.count < 7 else { return "*" }
        var groups: [ClosedRange<Int>] = []
        for day in days.map(\.rawValue).sorted() {
            if let last = groups.last, last.upperBound + 1 == day {
                groups[groups.count - 1] = last.lowerBound...day
            } else {
                groups.append(day...day)
            }
        }
        return groups.map { $0.count == 1 ? dayNames[$0.lowerBound] : "\(dayNames[$0.lowerBound])-\(dayNames[$0.upperBound])" }
            .joined(separator: ",")
    }

    private static func text(minute: Int) -> String {
        let (hour, minute) = minute.quotientAndRemainder(dividingBy: 60)
        return "\(hour < 10 ? "0" : "")\(hour):\(minute < 10 ? "0" : "")\(minute)"
    }

    /// The rate with the largest unit that represents it exactly.
    private static func text(rate: Int64) -> String {
        for (unit, size) in [("T", Int64(1) << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)] where rate % size == 0 {
            return "\(rate / size)\(unit)"
        }
        return "\(rate)"
    }
}

extension Substring {
    fileprivate var trimmed: String { split(whereSeparator: \.isWhitespace).joined(separator: " ") }
}
