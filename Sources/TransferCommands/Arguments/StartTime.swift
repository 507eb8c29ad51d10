import ArgumentParser
package import Foundation

/// A point in time in one of these forms: ISO 8601, by default in this machine's time zone; a time of day, such as `23:00`, for its next
/// occurrence; `tomorrow`, optionally with a time of day; or a duration from now, such as `+90s` or `+5m`.
package struct StartTime: ExpressibleByArgument {
    package let date: Date

    private static let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

    package init?(argument: String) { self.init(argument: argument, now: Date()) }

    /// Parses an argument; nil if the argument has none of the forms that the documentation of this type lists.
    ///
    /// - Parameters:
    ///   - argument: The argument.
    ///   - now: The current time.
    ///   - zone: The time zone for arguments that contain none.
    package init?(argument: String, now: Date, zone: TimeZone = .current) {
        if argument.hasPrefix("+") {
            // Checked here, because Int32 would accept another sign, as in "++5m".
            let digits = argument.dropFirst().dropLast()
            guard let unit = argument.last.flatMap({ Self.units[$0] }), digits.allSatisfy({ ("0"..."9").contains($0) }),
                let number = Int32(digits)
            else { return nil }
            date = now + Double(number) * unit
        } else if let date = Self.timeOfDay(argument, now, zone) {
            self.date = date
        } else {
            guard let date = Self.date(argument, zone) else { return nil }
            self.date = date
        }
    }

    /// The next occurrence of a time of day, or a time of the next day; nil if the text is neither.
    private static func timeOfDay(_ text: String, _ now: Date, _ zone: TimeZone) -> Date? {
        let format = #/(tomorrow)?(?:(?:^|[T ])(\d{1,2}):(\d\d))?/#
        guard !text.isEmpty, let match = text.wholeMatch(of: format.asciiOnlyDigits()) else { return nil }
        let (hour, minute) = (match.2.flatMap { Int($0) } ?? 0, match.3.flatMap { Int($0) } ?? 0)
        guard hour < 24, minute < 60 else { return nil }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = zone
        guard match.1 != nil else {
            return calendar.nextDate(after: now, matching: DateComponents(hour: hour, minute: minute, second: 0), matchingPolicy: .nextTime)
        }
        guard let tomorrow = calendar.date(byAdding: .day, value: 1, to: calendar.startOfDay(for: now)) else { return nil }
        return calendar.date(bySettingHour: hour, minute: minute, second: 0, of: tomorrow)
    }

    private static func date(_ text: String, _ localZone: TimeZone) -> Date? {
        let format = #/(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?/#
        guard let match = text.wholeMatch(of: format.asciiOnlyDigits()) else { return nil }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = localZone
        if let zone = match.8 {
            guard let zone = timeZone(zone) else { return nil }
            calendar.timeZone = zone
        }
        var components = DateComponents(year: Int(match.1), month: Int(match.2), day: Int(match.3))
        components.hour = match.4.flatMap { Int($0) } ?? 0
        components.minute = match.5.flatMap { Int($0) } ?? 0
        components.second = match.6.flatMap { Int($0) } ?? 0
        guard components.isValidDate(in: calendar), let date = calendar.date(from: components) else { return nil }
        let fraction = match.7.flatMap { Double("0.\($0)") } ?? 0
        return date + fraction
    }

    private static func timeZone(_ text: Substring) -> TimeZone? {
        let digits = text.filter(\.isNumber)
        guard let hours = Int("0" + digits.prefix(2)), let minutes = Int("0" + digits.dropFirst(2)), hours < 24, minutes < 60 else {
            return nil
        }
        return TimeZone(secondsFromGMT: (text.first == "-" ? -1 : 1) * (hours * 3_600 + minutes * 60))
    }
}
