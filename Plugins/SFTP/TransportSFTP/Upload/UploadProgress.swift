import Locking
package import TransferCore

/// Tracks the progress of an upload over all ranges of the file, and assigns ranges to writers (`PartFileWriter`).
package final class UploadProgress: Sendable {
    /// A range of the file. One writer sends it from start to end.
    private struct RangeState {
        var range: UploadCheckpoint.Range
        /// The position up to which the connection has fetched the bytes for sending.
        var sent: Int64
        /// The position up to which a writer has claimed bytes to send.
        var claimed: Int64
        /// The position up to which the server had acknowledged bytes at the end of the attempt, synced or not.
        var acknowledged: Int64
        var isAssigned = false

        init(_ range: UploadCheckpoint.Range) {
            self.range = range
            (sent, claimed, acknowledged) = (range.confirmed, range.confirmed, range.confirmed)
        }

        var rest: Int64 { range.end - claimed }
    }

    private struct State {
        var checkpoint: UploadCheckpoint
        var rangeStates: [RangeState]
        /// The task that saves the newest checkpoint, after all earlier ones; nil before the first checkpoint.
        var saving: Task<Void, any Error>?
        var isOver = false
        var interruptedSyncs: InterruptedSyncs
        var wasInterrupted = false

        var totals: (sent: Int64, confirmed: Int64) {
            rangeStates.reduce(into: (0, 0)) { totals, rangeState in
                totals.0 += rangeState.sent - rangeState.range.start
                totals.1 += rangeState.range.confirmed - rangeState.range.start
            }
        }

        /// nil if no unassigned range has bytes left.
        var nextIndex: Int? { rangeStates.firstIndex { !$0.isAssigned && $0.rest > 0 } }

        /// The range to split; nil if no range is large enough, or the file is sent in order.
        var largestIndex: Int? {
            guard checkpoint.ranges != nil else { return nil }
            let index = rangeStates.indices.max { rangeStates[$0].rest < rangeStates[$1].rest }
            return index.flatMap { rangeStates[$0].rest >= 2 * smallestRange ? $0 : nil }
        }
    }

    /// The minimum size in bytes of a range after a split. For a smaller range, an additional writer would save no time.
    package static let smallestRange: Int64 = 1 << 20

    private let reporter: AttemptReporter
    private let state: Locked<State>

    /// - Parameters:
    ///   - start: The position at which sending starts if the file has no ranges.
    ///   - size: The file's size in bytes; nil for a growing source.
    package init(_ checkpoint: UploadCheckpoint, from start: Int64, size: Int64?, reporter: AttemptReporter) {
        self.reporter = reporter
        let ranges = checkpoint.ranges ?? [UploadCheckpoint.Range(start: 0, end: size ?? .max, confirmed: start)]
        state = Locked(
            State(
                checkpoint: checkpoint, rangeStates: ranges.map(RangeState.init),
                interruptedSyncs: InterruptedSyncs(checkpoint.interruptedSyncs)))
    }

    // MARK: Assignment of ranges

    /// Whether several writers can send the file.
    var isShared: Bool { state.withLock { $0.checkpoint.ranges != nil } }

    /// Whether there is work for an idle writer.
    package var hasMore: Bool { state.withLock { $0.nextIndex != nil || $0.largestIndex != nil } }

    /// Assigns a range to an idle writer: an unassigned one, or half of the unclaimed bytes of the range with the most unclaimed bytes.
    ///
    /// - Returns: The index of the range and the position to start at; nil if no range is left.
    package func assignRange() -> (index: Int, start: Int64)? {
        state.withLock { state in
            if let index = state.nextIndex {
                state.rangeStates[index].isAssigned = true
                return (index, state.rangeStates[index].claimed)
            }
            guard let largest = state.largestIndex else { return nil }
            let range = state.rangeStates[largest].range
            let middle = range.end - state.rangeStates[largest].rest / 2
            state.rangeStates[largest].range.end = middle
            var rangeState = RangeState(UploadCheckpoint.Range(start: middle, end: range.end, confirmed: middle))
            rangeState.isAssigned = true
            state.rangeStates.append(rangeState)
            return (state.rangeStates.count - 1, middle)
        }
    }

    /// Claims the next bytes of a range for its writer.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of bytes.
    ///   - index: The index of the range.
    /// - Returns: The claimed bytes; nil at the end of the range.
    package func claim(upTo limit: Int64, of index: Int) -> Swift.Range<Int64>? {
        state.withLock { state in
            let rangeState = state.rangeStates[index]
            guard rangeState.rest > 0 else { return nil }
            state.rangeStates[index].claimed += min(limit, rangeState.rest)
            return rangeState.claimed..<state.rangeStates[index].claimed
        }
    }

    // MARK: Progress

    /// Returns whether a new checkpoint would confirm more bytes than the last one.
    ///
    /// - Parameter positions: For each range, by index, the position up to which the server has all bytes.
    func isOutdated(_ positions: [Int: Int64]) -> Bool {
        state.withLock { state in
            !state.isOver && positions.contains { index, position in position > state.rangeStates[index].range.confirmed }
        }
    }

    /// The part file is complete and will be renamed, so stop saving checkpoints.
    func end() { state.withLock { $0.isOver = true } }

    /// The server may have lost any unconfirmed bytes, so stop saving checkpoints, and remove the acknowledged bytes from the last one.
    ///
    /// - Parameter isInterrupted: Whether the connection broke during the sync.
    func endAfterFailedSync(isInterrupted: Bool) async {
        let mustSave = state.withLock { state in
            state.isOver = true
            // If several writers lose their connections at the same time, only one interruption counts.
            let isCounted = isInterrupted && !state.wasInterrupted
            if isCounted {
                state.wasInterrupted = true
                state.interruptedSyncs = state.interruptedSyncs.incremented
            }
            let unsynced = state.rangeStates.indices.filter { state.rangeStates[$0].acknowledged > state.rangeStates[$0].range.confirmed }
            for index in unsynced { state.rangeStates[index].acknowledged = state.rangeStates[index].range.confirmed }
            return isCounted || !unsynced.isEmpty
        }
        // A separate task, because the attempt's task may be cancelled.
        if mustSave { await Task { try? await self.enqueueSaving([:]) }.value }
    }

    /// Decreases the count of interrupted syncs, which the next checkpoint stores.
    func didSync() {
        state.withLock { $0.interruptedSyncs = $0.interruptedSyncs.decremented }
    }

    /// See ``InterruptedSyncs/confirmsUnsyncedBytes``.
    var confirmsUnsyncedBytes: Bool { state.withLock { $0.interruptedSyncs.confirmsUnsyncedBytes } }

    /// See ``InterruptedSyncs/step``.
    var syncStep: Int64? { state.withLock { $0.interruptedSyncs.step } }

    /// Returns the number of unconfirmed bytes of a file with this size.
    func rest(of size: Int64) -> Int64 { size - state.withLock { $0.totals.confirmed } }

    func begin() {
        state.withLock { if $0.totals.confirmed > 0 { report($0) } }
    }

    /// - Parameter position: The position up to which the connection has fetched the bytes for sending.
    func update(sent position: Int64, of index: Int) {
        state.withLock { state in
            state.rangeStates[index].sent = max(state.rangeStates[index].sent, position)
            report(state)
        }
    }

    /// Saves a checkpoint that confirms bytes of some ranges. Waits for earlier checkpoints, so that an older one can't overwrite a newer one.
    /// Throws an error if the queue can't store the checkpoint.
    ///
    /// - Parameter positions: For each range, by index, the position up to which the server has all bytes.
    package func save(_ positions: [Int: Int64]) async throws {
        try await enqueueSaving(positions)
    }

    /// Saves a checkpoint with the bytes that the server acknowledged but did not sync.
    ///
    /// - Parameter positions: For each range, by index, the position up to which the server acknowledged all bytes.
    /// - Throws: An error if the queue can't store the checkpoint.
    package func save(acknowledged positions: [Int: Int64]) async throws {
        let isOver = state.withLock { state in
            guard !state.isOver else { return true }
            for (index, position) in positions {
                state.rangeStates[index].acknowledged = max(state.rangeStates[index].acknowledged, position)
            }
            return false
        }
        if !isOver { try await enqueueSaving([:]) }
    }

    private func enqueueSaving(_ positions: [Int: Int64]) async throws {
        let saving = state.withLock { state in
            let saving = Task { [previous = state.saving] in
                _ = await previous?.result
                try await self.saveNow(positions)
            }
            state.saving = saving
            return saving
        }
        try await saving.value
    }

    private func saveNow(_ positions: [Int: Int64]) async throws {
        let (checkpoint, confirmed) = state.withLock { state in
            var checkpoint = state.checkpoint
            checkpoint.interruptedSyncs = state.interruptedSyncs.stored
            let ranges = state.rangeStates.enumerated().map { index, rangeState in
                var range = rangeState.range
                range.confirmed = max(range.confirmed, positions[index] ?? 0)
                range.acknowledged = rangeState.acknowledged > range.confirmed ? rangeState.acknowledged : nil
                return range
            }
            if checkpoint.ranges != nil {
                checkpoint.ranges = UploadCheckpoint.joined(ranges)
            } else {
                checkpoint.acknowledged = ranges.first?.acknowledged
            }
            return (checkpoint, UploadCheckpoint.sum(ranges))
        }
        try await reporter.save(checkpoint.encoded(confirmed: confirmed))
        state.withLock { state in
            for (index, position) in positions {
                state.rangeStates[index].range.confirmed = max(state.rangeStates[index].range.confirmed, position)
                state.rangeStates[index].sent = max(state.rangeStates[index].sent, position)
            }
            report(state)
        }
    }

    /// Called while the lock is held, so that reports stay in order.
    private func report(_ state: State) {
        let totals = state.totals
        reporter.report(sent: totals.sent, confirmed: totals.confirmed)
    }
}
