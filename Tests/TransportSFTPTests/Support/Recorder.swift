import Locking
import TransferCore

final class Recorder: Sendable {
    private let state = Locked<(checkpoints: [Checkpoint], sent: [Int64], logins: Int, remainingPartFiles: [String])>(([], [], 0, []))
    private let isOver = Locked(false)

    /// Whether the attempt has finished. A finished attempt sends no more reports, so tests stop waiting for one.
    var isFinished: Bool { isOver.withLock { $0 } }

    func finish() { isOver.withLock { $0 = true } }

    var checkpoints: [Checkpoint] { state.withLock { $0.checkpoints } }
    var sent: [Int64] { state.withLock { $0.sent } }
    /// The number of reported authenticated responses.
    var logins: Int { state.withLock { $0.logins } }
    /// The reported part files of cancelled attempts.
    var remainingPartFiles: [String] { state.withLock { $0.remainingPartFiles } }

    var reporter: AttemptReporter {
        var reporter = AttemptReporter(
            progress: { sent, _ in self.state.withLock { $0.sent.append(sent) } },
            checkpoint: { checkpoint in self.state.withLock { $0.checkpoints.append(checkpoint) } },
            answer: { self.state.withLock { $0.logins += 1 } })
        reporter.remainingPartFileHandler = { location in self.state.withLock { $0.remainingPartFiles.append(location) } }
        return reporter
    }
}
