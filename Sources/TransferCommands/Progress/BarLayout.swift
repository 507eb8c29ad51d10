import TransferKit

/// Formats progress bars for the available width, and omits details that don't fit.
struct BarLayout: Sendable {
    let hasColor: Bool

    private static let minimumBar = 10
    /// The minimum width at which the details contain their units.
    private static let wide = 100
    private static let maximumBar = 40

    func line(_ name: String, _ statistics: SessionStatistics, width: Int) -> String {
        let total = statistics.bytesTotal ?? 0
        let fraction = total > 0 ? Double(statistics.bytesSent) / Double(total) : 0
        let files = statistics.files > 1 ? (statistics.filesDone, statistics.files, "files") : nil
        let details = Self.details(
            rate: statistics.rate, seconds: statistics.secondsRemaining, count: files, size: statistics.bytesTotal, width: width)
        return compose(name.withoutControlCharacters, fraction: min(1, max(0, fraction)), details: details, width: width)
    }

    /// The details of a line, padded so that the columns of all lines align: rate, remaining time, completed and total
    /// count, size.
    private static func details(
        rate: Double?, seconds: Double?, count: (done: Int, all: Int, noun: String)?, size: Int64?, width: Int
    ) -> [String] {
        let isWide = width >= wide
        let parts = count.map { "\($0.done)/\($0.all)" + (isWide ? " \($0.noun)" : "") } ?? ""
        return [
            padded(Figures.rate(rate), 10), padded(Figures.time(seconds) + (isWide ? " left" : ""), isWide ? 12 : 7),
            padded(parts, isWide ? 14 : 7), padded(Figures.size(size), 9),
        ]
    }

    /// The bar of the total.
    ///
    /// - Parameters:
    ///   - rate: The rate of all running sessions, in bytes per second.
    ///   - isSettled: Whether the rate is steady enough for a remaining time.
    func total(_ total: RunTotal, rate: Double, isSettled: Bool, width: Int) -> String {
        let remaining = rate > 0 && isSettled ? Double(total.bytesTotal - total.bytesSent) / rate : nil
        return compose(
            "total", fraction: total.fraction,
            details: Self.details(
                rate: rate > 0 ? rate : nil, seconds: remaining.map { max(0, $0) },
                count: (total.sessionsEnded, total.sessions, "sessions"),
                size: total.bytesTotal, width: width), width: width)
    }

    /// The length of the words at the beginning of a line about an event, with the spaces after them.
    private static let wordLength = 11

    /// A line about an event, with a color for its first words: green for success, red for errors, yellow for events after which the queue
    /// continues without user action.
    func colored(_ line: String) -> String {
        var word = line.prefix(Self.wordLength)
        while word.last == " " { word.removeLast() }
        // ECMA-48, select graphic rendition: 31 red, 32 green, 33 yellow.
        let color: Int? =
            switch word {
            case "completed": 32
            case "failed", "gave up", "blocked", "storage": 31
            case "retrying", "restarted", "moved", "warning", "waiting", "missed": 33
            default: nil
            }
        guard hasColor, let color else { return line }
        return "\u{1B}[\(color)m\(word)\u{1B}[0m\(line.dropFirst(word.count))"
    }

    /// The indices of the details in the order of their importance: remaining time, rate, size, count.
    private static let priority = [1, 0, 3, 2]

    /// Joins name, bar, percentage and details. Omits the least important details that don't fit. Leaves the last column free, because some
    /// terminals wrap a full line.
    ///
    /// - Parameter details: Rate, remaining time, count and size.
    func compose(_ name: String, fraction: Double, details: [String], width: Int) -> String {
        let percent = "\(Int(fraction * 100))%"
        var tail = Self.padded(percent, 4)
        let columns = max(1, width - 1)
        var (shown, used): ([Int], Int) = ([], tail.columns)
        for index in Self.priority where details.indices.contains(index) {
            guard columns - used - 2 - details[index].columns > Self.minimumBar + 10 else { continue }
            shown.append(index)
            used += 2 + details[index].columns
        }
        for index in shown.sorted() { tail += "  " + details[index] }
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
