import Locking
import TransferCore

/// Lets the sessions of accounts go on whose delegate says that there are new credentials. Where those are refused as well, again and again, the
/// delays grow, so that no server is asked without end, and no user is locked out.
final class CredentialRetries: Sendable {
    private struct Row {
        var count = 0
        var end: Duration
    }

    /// Answers with more time between them are not about the same refusal.
    private static let memory = Duration.seconds(600)

    private let rows = Locked<[String: Row]>([:])

    /// Unblocks an account: at once for the first answer in a row, and otherwise later, without keeping the caller.
    func unblock(_ account: String, of queue: TransferQueue) async {
        let clock = queue.configuration.clock
        let delay = rows.withLock { rows in
            let now = clock.now()
            var row = rows[account] ?? Row(end: now)
            if now - row.end > Self.memory { row.count = 0 }
            row.count += 1
            let delay = row.count == 1 ? .zero : RetryPolicy().delay(afterFailures: row.count - 1, retryAfter: nil, fraction: 1)
            row.end = now + delay
            rows[account] = row
            return delay
        }
        // An account that was removed, or a queue that was shut down meanwhile, needs nothing more.
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
