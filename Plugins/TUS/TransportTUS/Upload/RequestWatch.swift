import Locking

/// How many bytes the network took of one `PATCH` so far, and when that is worth a checkpoint: once more is gone than can wait in this machine, and
/// each time that it has doubled since. So whoever finds the checkpoint after a sudden end knows half of the truth at the least.
final class RequestWatch: Sendable {
    /// The numbers to keep; only the last of those that nobody took yet.
    let marks: AsyncStream<Int64>
    private let mark: AsyncStream<Int64>.Continuation
    private let state = Locked((taken: Int64(0), last: ChunkPlan.buffered / 2))

    init() {
        (marks, mark) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    var taken: Int64 { state.withLock { $0.taken } }

    /// Called on the HTTP client's thread.
    func note(_ taken: Int64) {
        let isDue = state.withLock { state in
            state.taken = taken
            guard taken > state.last * 2, state.last <= ChunkPlan.telling else { return false }
            state.last = taken
            return true
        }
        if isDue { mark.yield(taken) }
    }

    func end() { mark.finish() }
}
