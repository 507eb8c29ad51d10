import Locking
import TransferCore

/// Where an upload stands, over all ranges of the file that are on their way at once: made durable before it is told.
final class UploadRecord: Sendable {
    private struct State {
        var checkpoint: UploadCheckpoint
        var ranges: [UploadCheckpoint.Range]
        /// Up to where the network took bytes, of each range.
        var sent: [Int64]
        /// The checkpoint that is made last.
        var saving: Task<Void, any Error>?

        /// Over all ranges, in bytes.
        var totals: (sent: Int64, confirmed: Int64) {
            ranges.indices.reduce(into: (0, 0)) { totals, index in
                totals.0 += sent[index] - ranges[index].start
                totals.1 += ranges[index].confirmed - ranges[index].start
            }
        }
    }

    /// What one of the ranges is: where it begins, and where it ends; nil if that is where the source does.
    let bounds: [(start: Int64, end: Int64?)]
    private let reporter: AttemptReporter
    private let state: Locked<State>

    /// - Parameter start: From where on bytes are sent, where there is but one range.
    init(_ checkpoint: UploadCheckpoint, from start: Int64, reporter: AttemptReporter) {
        self.reporter = reporter
        bounds = checkpoint.ranges?.map { ($0.confirmed, $0.end) } ?? [(start, nil)]
        let ranges = checkpoint.ranges ?? [UploadCheckpoint.Range(start: 0, end: .max, confirmed: start)]
        state = Locked(State(checkpoint: checkpoint, ranges: ranges, sent: ranges.map(\.confirmed)))
    }

    /// Up to where a checkpoint vouches for the bytes of a range.
    func confirmed(of index: Int) -> Int64 { state.withLock { $0.ranges[index].confirmed } }

    /// How many bytes are yet to be confirmed.
    func rest(of size: Int64) -> Int64 { size - state.withLock { $0.totals.confirmed } }

    /// Tells where the attempt begins.
    func begin() {
        state.withLock { if $0.totals.confirmed > 0 { report($0) } }
    }

    /// - Parameter position: Up to where the network took bytes.
    func note(sent position: Int64, of index: Int) {
        state.withLock { state in
            state.sent[index] = max(state.sent[index], position)
            report(state)
        }
    }

    /// Makes a checkpoint that vouches for the bytes of a range, after those that others make now: one that is stored late would take back what
    /// a newer one vouched for.
    func save(_ position: Int64, of index: Int) async throws {
        let saving = state.withLock { state in
            let saving = Task { [previous = state.saving] in
                _ = await previous?.result
                try await self.saveNow(position, of: index)
            }
            state.saving = saving
            return saving
        }
        try await saving.value
    }

    private func saveNow(_ position: Int64, of index: Int) async throws {
        let (checkpoint, ranges) = state.withLock { state in
            var (checkpoint, ranges) = (state.checkpoint, state.ranges)
            ranges[index].confirmed = max(ranges[index].confirmed, position)
            if checkpoint.ranges != nil { checkpoint.ranges = ranges }
            return (checkpoint, ranges)
        }
        try await reporter.save(checkpoint.encoded(confirmed: ranges.reduce(0) { $0 + $1.confirmed - $1.start }))
        state.withLock { state in
            state.ranges = ranges
            state.sent[index] = max(state.sent[index], position)
            report(state)
        }
    }

    /// Under the lock, so that nothing is told after what came later.
    private func report(_ state: State) {
        let totals = state.totals
        reporter.report(sent: totals.sent, confirmed: totals.confirmed)
    }
}
