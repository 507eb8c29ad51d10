import Locking
package import TransferCore

/// The progress of an upload over all ranges of the file, saved before it is reported; and which writer sends which range.
package final class UploadRecord: Sendable {
    /// A range of the file, which one writer sends from start to end.
    private struct Part {
        var range: UploadCheckpoint.Range
        /// The position up to which the network took bytes.
        var sent: Int64
        /// The position up to which a writer has claimed bytes to send.
        var claimed: Int64
        /// The position up to which the server acknowledged bytes, synced or not, before the connection broke.
        var acknowledged: Int64
        /// Whether a writer sends it.
        var isTaken = false

        init(_ range: UploadCheckpoint.Range) {
            self.range = range
            (sent, claimed, acknowledged) = (range.confirmed, range.confirmed, range.confirmed)
        }

        /// The number of bytes that no writer has claimed.
        var rest: Int64 { range.end - claimed }
    }

    private struct State {
        var checkpoint: UploadCheckpoint
        var parts: [Part]
        /// The last checkpoint that is being saved.
        var saving: Task<Void, any Error>?
        /// Whether no more checkpoints are saved here.
        var isOver = false

        /// Bytes over all ranges.
        var totals: (sent: Int64, confirmed: Int64) {
            parts.reduce(into: (0, 0)) { totals, part in
                totals.0 += part.sent - part.range.start
                totals.1 += part.range.confirmed - part.range.start
            }
        }

        /// The next range for an idle writer, or nil if no range remains.
        var nextIndex: Int? { parts.firstIndex { !$0.isTaken && $0.rest > 0 } }

        /// The range that is best to split; nil if none is large enough, or the file is sent in order.
        var largestIndex: Int? {
            guard checkpoint.ranges != nil else { return nil }
            let index = parts.indices.max { parts[$0].rest < parts[$1].rest }
            return index.flatMap { parts[$0].rest >= 2 * smallestRange ? $0 : nil }
        }
    }

    /// Smaller ranges are finished sooner by their own writer than by another one.
    package static let smallestRange: Int64 = 1 << 20

    private let reporter: AttemptReporter
    private let state: Locked<State>

    /// - Parameters:
    ///   - start: Where sending starts if the file is sent in order.
    ///   - size: The file's size; nil for a growing source.
    package init(_ checkpoint: UploadCheckpoint, from start: Int64, size: Int64?, reporter: AttemptReporter) {
        self.reporter = reporter
        let ranges = checkpoint.ranges ?? [UploadCheckpoint.Range(start: 0, end: size ?? .max, confirmed: start)]
        state = Locked(State(checkpoint: checkpoint, parts: ranges.map(Part.init)))
    }

    // MARK: Who sends what

    /// Whether several writers can send the file.
    var isShared: Bool { state.withLock { $0.checkpoint.ranges != nil } }

    /// Whether there is work for an idle writer.
    package var hasMore: Bool { state.withLock { $0.nextIndex != nil || $0.largestIndex != nil } }

    /// Gives a range to an idle writer: a free one, or the second half of the range that is farthest from complete.
    ///
    /// - Returns: The range, and where to start in it; nil if nothing is left.
    package func take() -> (index: Int, start: Int64)? {
        state.withLock { state in
            if let index = state.nextIndex {
                state.parts[index].isTaken = true
                return (index, state.parts[index].claimed)
            }
            guard let largest = state.largestIndex else { return nil }
            let range = state.parts[largest].range
            let middle = range.end - state.parts[largest].rest / 2
            state.parts[largest].range.end = middle
            var part = Part(UploadCheckpoint.Range(start: middle, end: range.end, confirmed: middle))
            part.isTaken = true
            state.parts.append(part)
            return (state.parts.count - 1, middle)
        }
    }

    /// Claims the next bytes of a range.
    ///
    /// - Returns: Nil at the end of the range.
    package func claim(upTo limit: Int64, of index: Int) -> Swift.Range<Int64>? {
        state.withLock { state in
            let part = state.parts[index]
            guard part.rest > 0 else { return nil }
            state.parts[index].claimed += min(limit, part.rest)
            return part.claimed..<state.parts[index].claimed
        }
    }

    // MARK: How far it is

    /// Whether a checkpoint would confirm more than the last one.
    ///
    /// - Parameter positions: How far the server has the given ranges.
    func isOutdated(_ positions: [Int: Int64]) -> Bool {
        state.withLock { state in
            !state.isOver && positions.contains { index, position in position > state.parts[index].range.confirmed }
        }
    }

    /// Saves no further checkpoint: the part file is complete and gets its name.
    func end() { state.withLock { $0.isOver = true } }

    /// Saves no further checkpoint because the server could not sync: it may have lost any bytes after those that are confirmed. Forgets the
    /// bytes that are only acknowledged.
    func endAfterFailedSync() async {
        let forgets = state.withLock { state in
            state.isOver = true
            let unsynced = state.parts.indices.filter { state.parts[$0].acknowledged > state.parts[$0].range.confirmed }
            for index in unsynced { state.parts[index].acknowledged = state.parts[index].range.confirmed }
            return !unsynced.isEmpty
        }
        // A separate task, because the attempt's task may be cancelled.
        if forgets { await Task { try? await self.enqueueSaving([:]) }.value }
    }

    /// The number of unconfirmed bytes.
    func rest(of size: Int64) -> Int64 { size - state.withLock { $0.totals.confirmed } }

    /// Reports where the attempt begins.
    func begin() {
        state.withLock { if $0.totals.confirmed > 0 { report($0) } }
    }

    /// - Parameter position: The position up to which the network took bytes.
    func note(sent position: Int64, of index: Int) {
        state.withLock { state in
            state.parts[index].sent = max(state.parts[index].sent, position)
            report(state)
        }
    }

    /// Saves a checkpoint that confirms the bytes of some ranges, after those that other writers are saving: a late one would undo a newer
    /// one.
    ///
    /// - Parameter positions: How far the server has each range.
    package func save(_ positions: [Int: Int64]) async throws {
        try await enqueueSaving(positions)
    }

    /// Saves a checkpoint with the bytes that the server acknowledged and did not sync before the connection broke.
    ///
    /// - Parameter positions: The position up to which the server acknowledged each range.
    package func save(acknowledged positions: [Int: Int64]) async throws {
        let isOver = state.withLock { state in
            guard !state.isOver else { return true }
            for (index, position) in positions {
                state.parts[index].acknowledged = max(state.parts[index].acknowledged, position)
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
            let ranges = state.parts.enumerated().map { index, part in
                var range = part.range
                range.confirmed = max(range.confirmed, positions[index] ?? 0)
                range.acknowledged = part.acknowledged > range.confirmed ? part.acknowledged : nil
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
                state.parts[index].range.confirmed = max(state.parts[index].range.confirmed, position)
                state.parts[index].sent = max(state.parts[index].sent, position)
            }
            report(state)
        }
    }

    /// Called under the lock, so that reports stay in order.
    private func report(_ state: State) {
        let totals = state.totals
        reporter.report(sent: totals.sent, confirmed: totals.confirmed)
    }
}
