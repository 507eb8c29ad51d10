import TransferKit

/// What a person wants to know at the end.
struct RunSummary: Sendable {
    let wasInterrupted: Bool
    let completed: Int
    let failed: Int
    let waiting: Int
    let paused: Int
    /// Of those that had begun.
    let held: Int
    let blocked: [AccountStatus]
    /// What keeps sessions from starting, if it is not about an account.
    let obstacle: WaitReason?
    /// What sessions left at servers and could not be removed there.
    let removalsDue: Int

    /// Sentences, or nothing when there is nothing to say.
    var lines: [String] {
        var lines: [String] = []
        if completed + failed + waiting + paused + held > 0 {
            var parts = ["\(Figures.count(completed, "session")) completed"]
            if failed > 0 { parts.append("\(failed) failed") }
            if waiting > 0 { parts.append("\(waiting) waiting") }
            if paused > 0 { parts.append("\(paused) paused") }
            if held > 0 { parts.append("\(held) held") }
            lines.append((wasInterrupted ? "Interrupted: " : "") + parts.joined(separator: ", ") + ".")
        }
        if paused > 0, !wasInterrupted {
            lines.append("What is paused waits for \"transferq resume\", and then for the next run; \"run --forever\" stays meanwhile.")
        }
        if let obstacle { lines.append(obstacle.description) }
        for status in blocked {
            guard let error = status.block?.error else { continue }
            lines.append(
                "The account \"\(status.account.name)\" is blocked: \(error) When that is mended: transferq account unblock '\(status.account.name)'"
            )
        }
        if removalsDue > 0 {
            lines.append(
                "\(Figures.count(removalsDue, "unfinished upload")) could not be removed at the server yet; the next run tries that again.")
        }
        return lines.map(\.withoutControlCharacters)
    }
}
