import Foundation

extension Date {
    /// The date in HTTP format, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
    var httpDate: String {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let fields = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second, .weekday], from: self)
        guard let year = fields.year, let month = fields.month, let day = fields.day, let hour = fields.hour, let minute = fields.minute,
            let second = fields.second, let weekday = fields.weekday
        else { return "" }
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func digits(_ number: Int, _ count: Int = 2) -> String {
            String(repeating: "0", count: max(0, count - String(number).count)) + String(number)
        }
        return
            "\(days[weekday - 1]), \(digits(day)) \(months[month - 1]) \(digits(year, 4)) \(digits(hour)):\(digits(minute)):\(digits(second)) GMT"
    }

    init(secondsSince1970 seconds: Int) {
        self.init(timeIntervalSince1970: TimeInterval(seconds))
    }
}
