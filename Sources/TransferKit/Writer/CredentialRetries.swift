import Locking
import TransferCore

/// Unblocks accounts after the delegate has reported new credentials. If the server rejects these credentials, too, the next unblocking is
/// delayed, longer each time. Without the delay, endless attempts could make the server lock the user out.
final class CredentialRetries: Sendable {
    /// The recent reports of new credentials for one account.
    private struct Series {
        /// The number of the delegate's reports in the series.
        var count = 0
        /// The uptime at which the account was or will be unblocked.
        var unblockingTime: Duration
    }

    /// The time after an unblocking at which a series ends. The next report of new credentials then starts a new series, without a delay.
    private static let seriesTimeout = Duration.seconds(600)

    private let allSeries = Locked<[String: Series]>([:])

    /// Unblocks an account: immediately after the first report of a series, otherwise after a delay. Does not wait for the delay.
    func unblock(_ account: String, of queue: TransferQueue) async {
        let clock = queue.configuration.clock
        let delay = allSeries.withLock { allSeries in
            let now = clock.now()
            var series = allSeries[account] ?? Series(unblockingTime: now)
            if now - series.unblockingTime > Self.seriesTimeout { series.count = 0 }
            series.count += 1
            let delay = series.count == 1 ? .zero : RetryPolicy().delay(afterFailures: series.count - 1, retryAfter: nil, fraction: 1)
            series.unblockingTime = now + delay
            allSeries[account] = series
            return delay
        }
        // Errors are ignored: usually, the account was removed or the queue was shut down.
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
