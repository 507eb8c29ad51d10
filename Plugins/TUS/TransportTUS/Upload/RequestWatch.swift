import Locking

/// Counts the sent bytes of one `PATCH`, and decides when to save the count as ``UnansweredRequest/taken``. The count is first saved when
/// it exceeds the number of bytes that this machine can buffer, and then each time it has doubled. The last saved count is the first above
/// ``ChunkPlan/significant``, because higher counts have no further effect.
final class RequestWatch: Sendable {
    /// The counts to save. The stream keeps only the newest count that has not been read.
    let countsToSave: AsyncStream<Int64>
    private let countsToSaveContinuation: AsyncStream<Int64>.Continuation
    private let state = Locked((taken: Int64(0), last: ChunkPlan.buffered / 2))

    init() {
        (countsToSave, countsToSaveContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    var taken: Int64 { state.withLock { $0.taken } }

    /// Updates the count of sent bytes. Called on the HTTP client's thread.
    func update(_ taken: Int64) {
        let isDue = state.withLock { state in
            state.taken = taken
            guard taken > state.last * 2, state.last <= ChunkPlan.significant else { return false }
            state.last = taken
            return true
        }
        if isDue { countsToSaveContinuation.yield(taken) }
    }

    func end() { countsToSaveContinuation.finish() }
}
