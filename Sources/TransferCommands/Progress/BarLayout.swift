import TransferKit
import TransferOutput

/// Formats progress bars for the available width, and omits details that don't fit.
struct BarLayout: Sendable {
    let hasColor: Bool

    private static let minimumBar = 10
    /// The minimum width at which the remaining time and the count contain words: "left", and "files" or "sessions".
    private static let wide = 100
    private static let maximumBar = 40

    enum ShownProgress: Sendable {
        /// The transferred fraction, 0 to 1.
        case fraction(Double)
        /// The number of transferred bytes, if the total is unknown.
        case bytes(Int64)

        /// The percentage; a dash if the total is unknown.
        fileprivate var percent: String { if case .fraction(let fraction) = self { "\(Int(fraction * 100))%" } else { "–" } }

        /// The percentage; the number of bytes if the total is unknown.
        fileprivate var figure: String { if case .bytes(let bytes) = self { Figures.size(bytes) } else { percent } }

        fileprivate func bar(_ length: Int) -> String {
            switch self {
            case .fraction(let fraction):
                let filled = Int(fraction * Double(length))
                return "[" + String(repeating: "#", count: filled) + String(repeating: "-", count: length - filled) + "]"
            case .bytes: return "[" + BarLayout.padded(figure, length) + "]"
            }
        }
    }

    /// The maximum fraction to show until all files of a session are complete or, for the total, all sessions have ended. A server may need
    /// time after the last byte.
    private static let highestFraction = 0.99

    /// Returns the line of a session: its name, bar, percentage and details.
    ///
    /// - Parameters:
    ///   - wait: What the session waits for after its last byte; nil while it still transfers bytes.
    ///   - width: The number of terminal columns.
    func line(_ name: String, _ statistics: SessionStatistics, wait: FinalWait?, width: Int) -> String {
        let fraction = min(statistics.fractionCompleted ?? 0, statistics.filesDone < statistics.files ? Self.highestFraction : 1)
        let progress = statistics.bytesTotal == nil ? ShownProgress.bytes(statistics.bytesSent) : .fraction(fraction)
        let files = statistics.files > 1 ? (statistics.filesDone, statistics.files, "files") : nil
        let details = Self.details(
            rate: statistics.rate, seconds: statistics.secondsRemaining, count: files, size: statistics.bytesTotal, width: width)
        return compose(name.withoutControlCharacters, progress, details: details, wait: wait, width: width)
    }

    /// What a transfer waits for after its last byte. A line shows this wait instead of the rate and the remaining time.
    enum FinalWait: Sendable {
        /// The server stores an upload.
        case server
        /// This machine stores a download.
        case disk

        /// The text in the columns of the rate and the remaining time.
        fileprivate var text: String {
            switch self {
            case .server: "waiting for server"
            case .disk: "storing"
            }
        }

        /// The text in the column of the remaining time, if the rate does not fit.
        fileprivate var shortText: String {
            switch self {
            case .server: "waiting"
            case .disk: "storing"
            }
        }
    }

    /// The details of a line, padded so that the columns of all lines align: rate, remaining time, completed and total
    /// count, size.
    private static func details(
        rate: Double?, seconds: Double?, count: (done: Int, all: Int, noun: String)?, size: Int64?, width: Int
    ) -> [String] {
        let isWide = width >= wide
        let countText = count.map { "\($0.done)/\($0.all)" + (isWide ? " \($0.noun)" : "") } ?? ""
        return [
            padded(Figures.rate(rate), 10), padded(Figures.time(seconds) + (isWide ? " left" : ""), isWide ? 12 : 7),
            padded(countText, isWide ? 14 : 7), padded(Figures.size(size), 9),
        ]
    }

    /// Returns the line of the total.
    ///
    /// - Parameters:
    ///   - running: The statistics of the running sessions.
    ///   - wait: What the sessions wait for after their last byte; nil while they still transfer bytes.
    ///   - width: The number of terminal columns.
    func total(_ total: RunTotal, _ running: [SessionStatistics], wait: FinalWait?, width: Int) -> String {
        let rate = running.compactMap(\.rate).reduce(0, +)
        let highest = total.sessionsEnded < total.sessions ? Self.highestFraction : 1
        return compose(
            "total", total.fraction.map { .fraction(min($0, highest)) } ?? .bytes(total.bytesSent),
            details: Self.details(
                rate: rate > 0 ? rate : nil, seconds: total.secondsRemaining(running),
                count: (total.sessionsEnded, total.sessions, "sessions"),
                size: total.fraction == nil ? nil : total.bytesTotal, width: width), wait: wait, width: width)
    }

    /// The width of the first column in a line about an event: the first words, and the spaces after them.
    static let wordLength = 11

    /// A line about an event, with a colour for its first words: green for success, red for errors, yellow for warnings, waits, and files or
    /// sessions that continue in another way.
    func colored(_ line: String) -> String {
        var word = line.prefix(Self.wordLength)
        while word.last?.isWhitespace == true { word.removeLast() }
        // ECMA-48, select graphic rendition: 31 red, 32 green, 33 yellow.
        let color: Int? =
            switch word {
            case "completed": 32
            case "failed", "gave up", "blocked", "storage": 31
            case "retrying", "restarted", "moved", "warning", "waiting", "missed": 33
            default: nil
            }
        guard hasColor, let color else { return line }
        return Self.colored(word, color) + line.dropFirst(word.count)
    }

    /// A line about an event like ``colored(_:)``, wrapped at spaces. The other lines are indented to the text of the first line, if there is
    /// enough room.
    func colored(_ line: String, width: Int) -> String {
        colored(line.wrapped(to: width, indent: width < 2 * Self.wordLength ? 2 : Self.wordLength))
    }

    /// The lines of a summary, with the number of failed sessions in red. Breaks lines at spaces, but not within a command, so that the command
    /// can be copied from a terminal.
    func colored(_ summary: RunSummary, width: Int) -> [String] {
        var lines = summary.lines.map { Self.wrapped($0, to: width) }
        guard !lines.isEmpty, hasColor, let failures = summary.failures, let range = lines[0].firstRange(of: failures) else { return lines }
        lines[0].replaceSubrange(range, with: Self.colored(failures, 31))
        return lines
    }

    private static func wrapped(_ line: String, to width: Int) -> String {
        // A private-use character stands for the spaces of commands.
        line.replacing(#/transferq(?: [A-Za-z0-9#'-]+)+/#) { $0.output.replacing(" ", with: "\u{E000}") }
            .wrapped(to: width, indent: 0).replacing("\u{E000}", with: " ")
    }

    private static func colored(_ text: some StringProtocol, _ color: Int) -> String { "\u{1B}[\(color)m\(text)\u{1B}[0m" }

    /// The indices of the details in the order of their importance: remaining time, rate, size, count.
    private static let priority = [1, 0, 3, 2]

    /// Joins name, bar, percentage and details. If the total is unknown, the bar contains the number of bytes. Omits details that don't fit, the
    /// least important first. Leaves the last column free, because some terminals wrap a full line.
    ///
    /// - Parameter details: Rate, remaining time, count and size.
    private func compose(_ name: String, _ progress: ShownProgress, details: [String], wait: FinalWait?, width: Int) -> String {
        let figure = progress.figure
        var tail = Self.padded(progress.percent, 4)
        let columns = max(1, width - 1)
        var (shown, used): ([Int], Int) = ([], tail.columns)
        for index in Self.priority where details.indices.contains(index) {
            guard columns - used - 2 - details[index].columns > Self.minimumBar + 10 else { continue }
            shown.append(index)
            used += 2 + details[index].columns
        }
        var texts = details
        if let wait {
            texts[1] = Self.padded(wait.shortText, details[1].columns)
            if shown.contains(0), shown.contains(1) {
                texts[0] = Self.padded(wait.text, details[0].columns + 2 + details[1].columns)
                shown.removeAll { $0 == 1 }
            }
        }
        for index in shown.sorted() { tail += "  " + texts[index] }
        var room = columns - tail.columns - 1
        guard room > Self.minimumBar + 4 else {
            return "\(name.fitted(to: max(1, columns - figure.count - 1))) \(figure)".fitted(to: columns)
        }
        let bar = min(Self.maximumBar, max(Self.minimumBar, room / 2))
        room -= bar + 3
        return "\(name.fitted(to: max(1, room))) \(progress.bar(bar)) \(tail)"
    }

    fileprivate static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
