import ArgumentParser
import Foundation

/// A point in time: ISO 8601, by default in this machine's time zone, or a duration from now, such as `+90s` or `+5m`.
struct StartTime: ExpressibleByArgument {
    let date: Date

    private static let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

    init?(argument: String) {
        if argument.hasPrefix("+") {
            guard let unit = argument.last.flatMap({ Self.units[$0] }), let number = Int32(argument.dropFirst().dropLast()), number >= 0
            else {
                return nil
            }
            date = Date(timeIntervalSinceNow: Double(number) * unit)
        } else {
            guard let date = Self.date(argument) else { return nil }
            self.date = date
        }
    }

    private static func date(_ text: String) -> Date? {
        let format = #/(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?/#
        guard let match = text.wholeMatch(of: format.asciiOnlyDigits()) else { return nil }
        var calendar = Calendar(identifier: .gregorian)
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
