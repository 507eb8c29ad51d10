import Locking
import TransferCore

final class Recorder: Sendable {
    private let state = Locked<(checkpoints: [Checkpoint], progress: [(sent: Int64, confirmed: Int64)])>(([], []))
    private let activityCounts = Locked<(activity: Int, waiting: Int)>((0, 0))

    let saved: AsyncStream<Checkpoint>
    private let save: AsyncStream<Checkpoint>.Continuation

    init() {
        (saved, save) = AsyncStream.makeStream()
    }

    func end() { save.finish() }

    var checkpoints: [Checkpoint] { state.withLock { $0.checkpoints } }
    var progress: [(sent: Int64, confirmed: Int64)] { state.withLock { $0.progress } }

    /// The number of activity reports. An attempt sends such reports while it works without transferring new bytes.
    var activity: Int { activityCounts.withLock { $0.activity } }
    /// The number of reports that the attempt is waiting for a response.
    var waiting: Int { activityCounts.withLock { $0.waiting } }

    func reporter(allowance: @escaping @Sendable (Int) -> Allowance = { Allowance(bytes: $0) }) -> AttemptReporter {
        AttemptReporter(
            progress: { sent, confirmed in self.state.withLock { $0.progress.append((sent, confirmed)) } },
            checkpoint: { checkpoint in
                self.state.withLock { $0.checkpoints.append(checkpoint) }
                self.save.yield(checkpoint)
            },
            allowance: allowance, activity: { self.activityCounts.withLock { $0.activity += 1 } },
            wait: { self.activityCounts.withLock { $0.waiting += 1 } })
    }
}
