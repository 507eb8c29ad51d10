import Locking
import TransferCore

/// Unblocks accounts for which the delegate reports new credentials. If the server refuses the credentials again, the account is unblocked only after
/// a delay, which grows each time. Without the delay, the server would receive endless attempts, and could lock the user out.
final class CredentialRetries: Sendable {
    private struct Row {
        /// The number of reports in the current series.
        var count = 0
        /// The uptime at which the account was or will be unblocked.
        var end: Duration
    }

    /// If an account was last unblocked longer ago than this duration, the next report of new credentials starts a new series without a delay.
    private static let seriesTimeout = Duration.seconds(600)

    private let rows = Locked<[String: Row]>([:])

    /// Unblocks an account: at once after the first report of a series, otherwise after a delay. Does not wait for the delay.
    func unblock(_ account: String, of queue: TransferQueue) async {
        let clock = queue.configuration.clock
        let delay = rows.withLock { rows in
            let now = clock.now()
            var row = rows[account] ?? Row(end: now)
            if now - row.end > Self.seriesTimeout { row.count = 0 }
            row.count += 1
            let delay = row.count == 1 ? .zero : RetryPolicy().delay(afterFailures: row.count - 1, retryAfter: nil, fraction: 1)
            row.end = now + delay
            rows[account] = row
            return delay
        }
        // If the account was removed or the queue was shut down, the error needs no handling.
        guard delay > .zero else {
            try? await queue.unblockAccount(account)
            return
        }
        Task { [weak queue] in
            try await clock.sleep(delay)
            try await queue?.unblockAccount(account)
        }
    }
}
