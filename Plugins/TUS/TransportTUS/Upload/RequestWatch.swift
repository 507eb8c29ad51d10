import Locking

/// Counts the sent bytes of one `PATCH`, and decides when to save the count as ``UnansweredRequest/accepted``. The count is first saved
/// when it exceeds the number of bytes that this machine can buffer, and then each time it has doubled. Once a count above
/// ``ChunkPlan/significantCount`` is saved, no higher count is saved, because higher counts change nothing.
final class RequestWatch: Sendable {
    /// The counts to save. The stream keeps only the newest count that has not been read.
    let countsToSave: AsyncStream<Int64>
    private let countsToSaveContinuation: AsyncStream<Int64>.Continuation
    /// `accepted` is the current count, and `last` the last count for which a save was due.
    private let state = Locked((accepted: Int64(0), last: ChunkPlan.maximumBuffered / 2))

    init() {
        (countsToSave, countsToSaveContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    var accepted: Int64 { state.withLock { $0.accepted } }

    /// Updates the count of sent bytes. Called on the HTTP client's thread.
    func update(_ accepted: Int64) {
        let isDue = state.withLock { state in
            state.accepted = accepted
            guard accepted > state.last * 2, state.last <= ChunkPlan.significantCount else { return false }
            state.last = accepted
            return true
        }
        if isDue { countsToSaveContinuation.yield(accepted) }
    }

    func end() { countsToSaveContinuation.finish() }
}
