import Locking
import TransferCore

/// How far an attempt is, told in order and never backwards, from whichever threads it is learned on.
final class TransferProgressRecord: Sendable {
    private let reporter: AttemptReporter
    private let state: Locked<(sent: Int64, confirmed: Int64)>

    init(_ reporter: AttemptReporter, from start: Int64) {
        self.reporter = reporter
        state = Locked((start, start))
    }

    var confirmed: Int64 { state.withLock { $0.confirmed } }

    /// - Parameter position: Up to where the network took bytes, or brought them.
    func note(sent position: Int64) {
        state.withLock { state in
            state.sent = max(state.sent, position)
            reporter.report(sent: state.sent, confirmed: state.confirmed)
        }
    }

    /// - Parameter position: Up to where a checkpoint vouches for the bytes.
    func note(confirmed position: Int64) {
        state.withLock { state in
            state.confirmed = max(state.confirmed, position)
            state.sent = max(state.sent, state.confirmed)
            reporter.report(sent: state.sent, confirmed: state.confirmed)
        }
    }
}

extension AttemptReporter {
    /// How many of the next bytes may be moved, as soon as any may.
    ///
    /// - Throws: `CancellationError`.
    func awaitAllowance(upTo limit: Int64) async throws -> Int64 {
        while true {
            let answer = allowance(upTo: Int(clamping: limit))
            if answer.bytes > 0 { return min(Int64(answer.bytes), limit) }
            // A wait of nothing would keep a thread busy with asking.
            try await Task.sleep(for: max(answer.retryAfter, .milliseconds(1)))
        }
    }
}
