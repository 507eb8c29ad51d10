import TransferKit

/// Formats progress bars for the available width, and omits details that don't fit.
struct BarLayout: Sendable {
    let hasColor: Bool

    private static let minimumBar = 10
    private static let maximumBar = 40

    func line(_ name: String, _ statistics: SessionStatistics, width: Int) -> String {
        let total = statistics.bytesTotal ?? 0
        let fraction = total > 0 ? Double(statistics.bytesSent) / Double(total) : 0
        let files = statistics.files > 1 ? "\(min(statistics.files, statistics.filesDone + 1))/\(statistics.files)" : ""
        let details = Self.details(rate: statistics.rate, seconds: statistics.secondsRemaining, count: files, size: statistics.bytesTotal)
        return compose(name.withoutControlCharacters, fraction: min(1, max(0, fraction)), details: details, width: width)
    }

    /// The details of a line, padded so that the columns of all lines align.
    private static func details(rate: Double?, seconds: Double?, count: String, size: Int64?) -> [String] {
        [padded(Figures.rate(rate), 10), padded(Figures.time(seconds), 7), padded(count, 7), padded(Figures.size(size), 9)]
    }

    func total(_ total: RunTotal, rate: Double, width: Int) -> String {
        let remaining = rate > 0 ? Double(total.bytesTotal - total.bytesSent) / rate : nil
        return compose(
            "total", fraction: total.fraction,
            details: Self.details(
                rate: rate > 0 ? rate : nil, seconds: remaining.map { max(0, $0) }, count: "\(total.sessionsEnded)/\(total.sessions)",
                size: total.bytesTotal), width: width)
    }

    func finished(_ text: String, isCompleted: Bool) -> String {
        let word = isCompleted ? "completed" : "failed   "
        // ECMA-48, select graphic rendition: 32 green, 31 red.
        return hasColor ? "\u{1B}[\(isCompleted ? 32 : 31)m\(word)\u{1B}[0m  \(text)" : "\(word)  \(text)"
    }

    /// Joins name, bar, percentage and details. Leaves the last column free, because some terminals wrap a full line.
    func compose(_ name: String, fraction: Double, details: [String], width: Int) -> String {
        let percent = "\(Int(fraction * 100))%"
        var tail = Self.padded(percent, 4)
        let columns = max(1, width - 1)
        for detail in details where columns - tail.columns - 2 - detail.columns > Self.minimumBar + 5 { tail += "  " + detail }
        var room = columns - tail.columns - 1
        guard room > Self.minimumBar + 4 else {
            return "\(name.fitted(to: max(1, columns - percent.count - 1))) \(percent)".fitted(to: columns)
        }
        let bar = min(Self.maximumBar, max(Self.minimumBar, room / 2))
        room -= bar + 3
        let filled = Int(fraction * Double(bar))
        let drawn = "[" + String(repeating: "#", count: filled) + String(repeating: "-", count: bar - filled) + "]"
        return "\(name.fitted(to: max(1, room))) \(drawn) \(tail)"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
