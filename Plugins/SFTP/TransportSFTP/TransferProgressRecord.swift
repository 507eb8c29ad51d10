import Locking
import TransferCore

/// The progress of an attempt, reported in order and never backwards, from any thread.
final class TransferProgressRecord: Sendable {
    private let reporter: AttemptReporter
    private let state: Locked<(sent: Int64, confirmed: Int64)>

    init(_ reporter: AttemptReporter, from start: Int64) {
        self.reporter = reporter
        state = Locked((start, start))
    }

    var confirmed: Int64 { state.withLock { $0.confirmed } }

    /// - Parameter position: The position up to which the network took or delivered bytes.
    func note(sent position: Int64) {
        state.withLock { state in
            state.sent = max(state.sent, position)
            reporter.report(sent: state.sent, confirmed: state.confirmed)
        }
    }

    /// - Parameter position: The position up to which a checkpoint confirms the bytes.
    func note(confirmed position: Int64) {
        state.withLock { state in
            state.confirmed = max(state.confirmed, position)
            state.sent = max(state.sent, state.confirmed)
            reporter.report(sent: state.sent, confirmed: state.confirmed)
        }
    }
}

extension AttemptReporter {
    /// The number of bytes that can be moved next, as soon as any can.
    ///
    /// - Throws: `CancellationError`.
    func awaitAllowance(upTo limit: Int64) async throws -> Int64 {
        while true {
            let answer = allowance(upTo: Int(clamping: limit))
            if answer.bytes > 0 { return min(Int64(answer.bytes), limit) }
            // A wait of zero would keep a thread busy asking.
            try await Task.sleep(for: max(answer.retryAfter, .milliseconds(1)))
        }
    }
}
