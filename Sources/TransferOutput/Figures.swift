package import Foundation
import TransferCore
package import TransferKit

/// Formats numbers as human-readable text.
package enum Figures {
    /// A size in bytes, or in a larger binary unit with three significant digits; a dash if it is unknown.
    package static func size(_ bytes: Int64?) -> String { bytes?.sizeText ?? "–" }

    /// A rate such as `1.25 MiB/s`; a dash if it is unknown.
    package static func rate(_ bytesPerSecond: Double?) -> String {
        guard let bytesPerSecond, bytesPerSecond.isFinite, bytesPerSecond < 1e18 else { return "–" }
        return size(Int64(bytesPerSecond)) + "/s"
    }

    /// A date as ISO 8601 in this machine's time zone, with its offset.
    package static func date(_ date: Date) -> String { date.formatted(Date.ISO8601FormatStyle(timeZone: .current)) }

    /// A time in the next hour as a number of seconds from now, such as `in 5 s`; `now` for the current time, or a time less than two seconds
    /// ago; any other time as a date.
    package static func moment(_ date: Date) -> String {
        let seconds = date.timeIntervalSinceNow.rounded(.up)
        if (-1...0).contains(seconds) { return "now" }
        return (1...3_600).contains(seconds) ? "in \(Int(seconds)) s" : "at \(self.date(date))"
    }

    /// The maximum duration to show, in seconds. A longer duration is shown as unknown, because the transfer makes almost no progress.
    private static let maximumDuration = 100 * 86_400.0

    /// A duration as hours (if any), minutes and seconds, such as `1:02:03`; dashes if the duration is unknown or too long.
    package static func time(_ seconds: Double?) -> String {
        guard let seconds, seconds.isFinite, seconds < maximumDuration else { return "–:––" }
        let total = Int(seconds.rounded(.up))
        let (hours, minutes, rest) = (total / 3600, total / 60 % 60, total % 60)
        let padded = rest < 10 ? "0\(rest)" : "\(rest)"
        return hours > 0 ? "\(hours):\(minutes < 10 ? "0" : "")\(minutes):\(padded)" : "\(minutes):\(padded)"
    }

    /// The percentage of sent or received bytes, rounded down; at most 99 until all files are complete. Nil if the total is zero or
    /// unknown. Some servers confirm bytes only at the end of a file, so the percentage of confirmed bytes would show no progress.
    package static func percent(_ statistics: SessionStatistics) -> Int? {
        guard let total = statistics.bytesTotal, total > 0 else { return nil }
        let percent = Int(Double(min(total, max(0, statistics.bytesDone, statistics.bytesSent))) / Double(total) * 100)
        return statistics.filesDone < statistics.files ? min(99, percent) : percent
    }

    /// A number with its noun, such as `3 files`. Adds an s for the plural.
    package static func count(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }
}
