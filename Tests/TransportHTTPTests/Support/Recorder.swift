import Dispatch
import Locking
import TransferCore

final class Recorder: Sendable {
    /// The reported numbers of transferred bytes.
    let sentBytes = AsyncStream.makeStream(of: Int64.self)
    /// Signalled after each checkpoint. Scripts of servers can wait for this signal, because scripts may block.
    let hasSaved = DispatchSemaphore(value: 0)
    private let state = Locked<(checkpoints: [Checkpoint], progress: [(sent: Int64, confirmed: Int64)], activity: Int)>(([], [], 0))

    var checkpoints: [Checkpoint] { state.withLock { $0.checkpoints } }
    /// The number of reports of activity without progress.
    var activity: Int { state.withLock { $0.activity } }
    var progress: [(sent: Int64, confirmed: Int64)] { state.withLock { $0.progress } }

    func reporter() -> AttemptReporter {
        AttemptReporter(
            progress: { sent, confirmed in
                self.state.withLock { $0.progress.append((sent, confirmed)) }
                self.sentBytes.continuation.yield(sent)
            },
            checkpoint: { checkpoint in
                self.state.withLock { $0.checkpoints.append(checkpoint) }
                self.hasSaved.signal()
            },
            activity: { self.state.withLock { $0.activity += 1 } })
    }
}
