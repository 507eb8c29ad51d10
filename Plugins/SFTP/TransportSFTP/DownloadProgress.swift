import Locking
import TransferCore

/// Reports the progress of a download, which never decreases. Can be used from any thread.
final class DownloadProgress: Sendable {
    private let reporter: AttemptReporter
    private let state: Locked<(sent: Int64, confirmed: Int64)>

    init(_ reporter: AttemptReporter, from start: Int64) {
        self.reporter = reporter
        state = Locked((start, start))
    }

    var confirmed: Int64 { state.withLock { $0.confirmed } }

    /// - Parameter position: The number of received bytes, including those of earlier attempts.
    func update(sent position: Int64) {
        state.withLock { state in
            state.sent = max(state.sent, position)
            reporter.report(sent: state.sent, confirmed: state.confirmed)
        }
    }

    /// - Parameter position: The position up to which a checkpoint confirms the bytes.
    func update(confirmed position: Int64) {
        state.withLock { state in
            state.confirmed = max(state.confirmed, position)
            state.sent = max(state.sent, state.confirmed)
            reporter.report(sent: state.sent, confirmed: state.confirmed)
        }
    }
}

extension AttemptReporter {
    /// Waits until the rate limits allow at least one byte.
    ///
    /// - Returns: The number of bytes to transfer now, from 1 to `limit`.
    /// - Throws: `CancellationError`.
    func awaitAllowance(upTo limit: Int64) async throws -> Int64 {
        while true {
            let granted = allowance(upTo: Int(clamping: limit))
            if granted.bytes > 0 { return min(Int64(granted.bytes), limit) }
            // A wait of zero would make this loop poll continuously.
            try await Task.sleep(for: max(granted.retryAfter, .milliseconds(1)))
        }
    }
}
