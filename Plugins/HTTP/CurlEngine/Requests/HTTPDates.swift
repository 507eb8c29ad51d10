extension HTTPHeaders {
    /// Returns the time for which the server asks clients to back off (`Retry-After`, RFC 9110, section 10.2.3); nil if the header is missing
    /// or invalid.
    ///
    /// If the value is a date, compares it with the response's `Date`, because the clocks of the two machines can differ.
    ///
    /// - Parameter now: The current time in seconds since 1970, for responses without a `Date`.
    package func retryAfter(now: Int) -> Duration? {
        guard let value = self["Retry-After"] else { return nil }
        // A value of digits only is a number of seconds, however large.
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) { return .seconds(UInt32(value) ?? .max) }
        guard let date = secondsSince1970(ofHTTPDate: value) else { return nil }
        let serverNow = self["Date"].flatMap(secondsSince1970(ofHTTPDate:)) ?? now
        return .seconds(Swift.max(0, date - serverNow))
    }
}

/// Returns the seconds since 1970 of a date in the only format that servers may send, for example `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110,
/// section 5.6.7); nil if the text has another format, or a year before 1970.
package func secondsSince1970(ofHTTPDate text: String) -> Int? {
    let parts = text.split(whereSeparator: { $0 == " " || $0 == ":" })
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    guard parts.count == 8, parts[7] == "GMT", let month = months.firstIndex(of: String(parts[2])) else { return nil }
    let numbers = [1, 3, 4, 5, 6].compactMap { Int(parts[$0]) }
    guard numbers.count == 5, (1...31).contains(numbers[0]), (1970...9999).contains(numbers[1]),
        (0...23).contains(numbers[2]), (0...59).contains(numbers[3]), (0...60).contains(numbers[4])
    else { return nil }
    // The formula counts years from March. The leap day is then the last day of a year, so the number of days before each month never
    // changes.
    let year = month < 2 ? numbers[1] - 1 : numbers[1]
    let monthFromMarch = (month + 10) % 12
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * monthFromMarch + 2) / 5 + numbers[0] - 719_469
    return days * 86_400 + numbers[2] * 3_600 + numbers[3] * 60 + numbers[4]
}
