import Locking
import TransferCore

/// Stores the reports of an attempt. Can limit the number of bytes that the attempt may move; after this number, the attempt waits.
final class AttemptRecorder: Sendable {
    struct Progress: Sendable {
        let sent: Int64
        let confirmed: Int64
    }

    private struct State {
        var progress: [Progress] = []
        var checkpoints: [Checkpoint] = []
        var totals: [Int64] = []
        /// The number of bytes that the attempt may still move; nil for any number.
        var allowance: Int?
    }

    /// Opens when the attempt has used up its allowance and requests more. ``RunningAttempt`` also opens this latch when the attempt ends, if a
    /// check waits for the latch.
    let exhausted = Latch()
    private let state: Locked<State>
    private let onSave: @Sendable (Checkpoint) async throws -> Void
    private let onProgress: @Sendable (_ confirmed: Int64) -> Void

    /// - Parameters:
    ///   - allowance: The number of bytes that the attempt may move before ``allowAll()``; nil for any number.
    ///   - onSave: Called with each checkpoint, before ``checkpoints`` contains the checkpoint.
    ///   - onProgress: Called with the number of confirmed bytes in each progress report.
    init(
        allowance: Int? = nil, onSave: @escaping @Sendable (Checkpoint) async throws -> Void = { _ in },
        onProgress: @escaping @Sendable (_ confirmed: Int64) -> Void = { _ in }
    ) {
        self.onProgress = onProgress
        state = Locked(State(allowance: allowance))
        self.onSave = onSave
    }

    var progress: [Progress] { state.withLock { $0.progress } }
    var totals: [Int64] { state.withLock { $0.totals } }
    var checkpoints: [Checkpoint] { state.withLock { $0.checkpoints } }

    func allowAll() {
        state.withLock { $0.allowance = nil }
    }

    var reporter: AttemptReporter {
        AttemptReporter(
            progress: { sent, confirmed in
                self.state.withLock { $0.progress.append(Progress(sent: sent, confirmed: confirmed)) }
                self.onProgress(confirmed)
            },
            checkpoint: { checkpoint in
                try await self.onSave(checkpoint)
                self.state.withLock { $0.checkpoints.append(checkpoint) }
            },
            allowance: { self.allowance(upTo: $0) }, total: { total in self.state.withLock { $0.totals.append(total) } })
    }

    private func allowance(upTo limit: Int) -> Allowance {
        let bytes = state.withLock { state in
            let bytes = min(limit, state.allowance ?? limit)
            state.allowance = state.allowance.map { $0 - bytes }
            return bytes
        }
        if bytes == 0, limit > 0 { exhausted.open() }
        return Allowance(bytes: bytes, retryAfter: .milliseconds(10))
    }
}
