import Foundation
import TransferKit
import TransferOutput

/// Describes how long a session has spent in the queue and in each phase of its attempts, for `show --timing`.
enum TimingDescription {
    private static let barWidth = 20

    /// The time in the queue, the running time, and a line for each phase of the attempts that took time.
    static func text(of session: SessionStatus, now: Date = Date()) -> String {
        let running = session.statistics.secondsElapsed
        let waiting = max(0, (session.endedAt ?? now).timeIntervalSince(session.createdAt) - running)
        var lines = ["In the queue: \(duration(waiting)), then running for \(duration(running))."]
        guard let times = session.times, times.total > 0 else {
            return (lines + ["No attempt has ended in this queue, so the time of each phase is unknown."]).joined(separator: "\n") + "\n"
        }
        let filesInFlight = running > 0 ? times.total / running : 1
        lines.append(
            filesInFlight > 1.5
                ? "The attempts took \(duration(times.total)) in all, because about \(Int(filesInFlight.rounded())) files were in flight:"
                : "The attempts took \(duration(times.total)) in all:")
        let phases = [
            ("connecting", times.secondsConnecting), ("transferring", times.secondsTransferring),
            ("waiting for the server", times.secondsAwaitingResponse), ("storing progress", times.secondsStoring),
            ("held by rate limits", times.secondsRateLimited),
        ]
        for (name, seconds) in phases where seconds > 0 {
            let share = seconds / times.total
            let bar = String(repeating: "#", count: Int((share * Double(barWidth)).rounded()))
            let columns = [
                padded(name, 22), padded(duration(seconds), 8, isNumber: true), padded(percent(share), 4, isNumber: true), bar,
            ]
            lines.append("  " + columns.joined(separator: "  "))
        }
        return lines.map { $0.trimmingCharacters(in: .newlines) + "\n" }.joined()
    }

    private static func percent(_ share: Double) -> String { "\(Int((share * 100).rounded()))%" }

    /// The duration in milliseconds below 1 s, in seconds with one decimal below 60 s, and otherwise as ``Figures/time(_:)`` formats it.
    private static func duration(_ seconds: Double) -> String {
        guard seconds < 60 else { return Figures.time(seconds) }
        return seconds < 1 ? "\(Int((seconds * 1_000).rounded())) ms" : String(format: "%.1f s", seconds)
    }

    private static func padded(_ text: String, _ width: Int, isNumber: Bool = false) -> String {
        let padding = String(repeating: " ", count: max(0, width - text.count))
        return isNumber ? padding + text : text + padding
    }
}
