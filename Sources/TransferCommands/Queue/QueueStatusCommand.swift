import ArgumentParser
import Foundation
import TransferControl
import TransferKit
import TransferOutput

struct QueueStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Shows the mode, progress, limits and session counts.",
        discussion: "Example: transferq queue status --json")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let (status, remaining, statistics) = try await common.withQueue { queue in
            (try await queue.status(), try await queue.remainingSessions(), try await queue.statistics())
        }
        let output = CommandContext.current.output
        if common.json {
            await output.write(JSONValue(status, remaining, statistics))
        } else {
            await output.write(Self.lines(status, remaining, statistics).map { $0 + "\n" }.joined())
        }
    }

    private static func lines(_ status: QueueStatus, _ remaining: Int, _ statistics: QueueStatistics) -> [String] {
        let states = [
            ("running", status.running), ("waiting", status.waiting), ("paused", status.paused), ("held", status.held),
            ("cancelled", status.cancelled), ("completed", status.completed), ("failed", status.failed),
        ]
        let drafts = status.drafts > 0 ? "; \(Figures.count(status.drafts, "draft"))" : ""
        let present = states.filter { $0.1 > 0 }.map { "\($0.1) \($0.0)" }
        var lines = [
            "Queue:     \(status.mode.rawValue)",
            "Sessions:  \(status.sessions)\(present.isEmpty ? "" : ": \(present.joined(separator: ", "))")\(drafts)",
            "Remaining: \(Figures.count(remaining, "session"))",
            "Files:     \(statistics.filesDone) of \(statistics.files) done, \(statistics.filesFailed) failed",
            "Size:      \(Figures.size(statistics.bytesDone)) of \(Figures.size(statistics.bytesTotal)) done"
                + (statistics.bytesSent > statistics.bytesDone ? ", \(Figures.size(statistics.bytesSent)) sent" : ""),
        ]
        if let rate = statistics.rate {
            lines.append("Rate:      \(Figures.rate(rate)), \(Figures.time(statistics.secondsRemaining)) left")
        }
        if statistics.removalsDue > 0 { lines.append("Removals:  \(statistics.removalsDue) pending on servers") }
        if let date = status.nextDue { lines.append("Next due:  \(Figures.date(date))") }
        lines.append("Limit:     \(status.sessionLimit.map { Figures.count($0, "concurrent session") } ?? "none")")
        lines.append("Max rate:  \(status.rateLimit.map { Figures.rate(Double($0)) } ?? "no limit")")
        if let timetable = status.timetable {
            lines.append("Timetable: \(timetable.text)")
            lines.append("Rate now:  \(status.currentRateLimit.map { Figures.rate(Double($0)) } ?? "no limit")")
        }
        lines.append("Min free:  \(Figures.size(status.diskFloor))")
        lines.append("Completed: \(status.retention.text)")
        return lines
    }
}
