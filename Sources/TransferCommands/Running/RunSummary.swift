import TransferKit
import TransferOutput

struct RunSummary: Sendable {
    let wasInterrupted: Bool
    let completed: Int
    /// The number of completed files.
    let files: Int
    /// The size of the completed files in bytes.
    let bytes: Int64
    /// The time during which at least one session was active and not paused.
    let duration: Duration
    let failed: Set<SessionID>
    let waiting: Int
    let paused: Int
    /// The number of sessions held after they had started.
    let held: Int
    /// The number of all held sessions.
    let heldInQueue: Int
    let blocked: [AccountStatus]
    /// The reason, other than a blocked account, that prevents sessions from starting.
    let obstacle: WaitReason?
    /// The number of unfinished uploads that could not be removed from servers.
    let removalsDue: Int

    var failures: String? { failed.isEmpty ? nil : "\(failed.count) failed" }

    /// The summary as sentences; empty if there is nothing to report.
    var lines: [String] {
        var lines: [String] = []
        if completed + failed.count + waiting + paused + held > 0 {
            var parts = ["\(Figures.count(completed, "session")) completed"]
            if let failures { parts.append(failures) }
            if waiting > 0 { parts.append("\(waiting) waiting") }
            if paused > 0 { parts.append("\(paused) paused") }
            if held > 0 { parts.append("\(held) held") }
            let content =
                files > 0
                ? " Completed \(Figures.count(files, "file")), \(Figures.size(bytes)), in \(Figures.time(duration / .seconds(1)))." : ""
            lines.append((wasInterrupted ? "Interrupted: " : "") + parts.joined(separator: ", ") + "." + content)
        } else if !wasInterrupted, heldInQueue > 0 {
            let held = "\(Figures.count(heldInQueue, "session")) \(heldInQueue == 1 ? "is" : "are") held"
            lines.append("The queue has no session to run, because \(held).")
            lines.append("To release held sessions: transferq release --all, then transferq run")
        } else if !wasInterrupted {
            lines.append("The queue has no session to run. To add one: transferq upload, or transferq download")
        }
        if failed.count == 1, let id = failed.first.map(SessionDescription.shortID) {
            lines.append("To see why it failed: transferq show \(id). To retry it: transferq retry \(id), then transferq run")
        } else if !failed.isEmpty {
            lines.append(
                "To see why sessions failed: transferq list --failed. To retry them: transferq retry --failed, then transferq run")
        }
        if waiting > 0 {
            if wasInterrupted {
                lines.append("To continue: transferq run")
            } else if obstacle == nil, blocked.isEmpty {
                lines.append("To see what the waiting sessions wait for: transferq list")
            }
        }
        if paused > 0, !wasInterrupted {
            lines.append(
                "To resume paused sessions: transferq resume --all, then transferq run. To wait for paused sessions: transferq run --forever"
            )
        }
        if let obstacle { lines.append(obstacle.advisedDescription) }
        for status in blocked {
            guard let error = status.blockingError else { continue }
            lines.append(
                "The account \"\(status.account.name)\" is blocked: \(error) After fixing this: transferq account unblock \(status.account.name.shellWord)"
            )
        }
        if removalsDue > 0 {
            lines.append(
                "\(Figures.count(removalsDue, "unfinished upload")) could not be removed from the server. The next run retries.")
        }
        return lines.map(\.withoutControlCharacters)
    }
}
