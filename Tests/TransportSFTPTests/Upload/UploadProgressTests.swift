import Locking
import Testing
import TransferCore
import TransportSFTP

/// Several writers that send ranges of one file in random order, with interruptions.
@Suite(.timeLimit(.minutes(10))) struct UploadProgressTests {
    private final class CheckpointRecorder: Sendable {
        let last = Locked<Checkpoint?>(nil)

        var reporter: AttemptReporter {
            AttemptReporter(progress: { _, _ in }, checkpoint: { checkpoint in self.last.withLock { $0 = checkpoint } })
        }
    }

    private struct Writer {
        /// The index of the current range.
        var index: Int?
        /// The position of the writer in each range.
        var positions: [Int: Int64] = [:]
    }

    private func newCheckpoint(_ size: Int64) -> UploadCheckpoint {
        var checkpoint = UploadCheckpoint(part: [1], final: [2], stage: .writing)
        checkpoint.ranges = [UploadCheckpoint.Range(start: 0, end: size, confirmed: 0)]
        return checkpoint
    }

    /// Runs one attempt until it is interrupted after a number of steps.
    ///
    /// - Parameter sent: Called with each claimed range of bytes.
    private func attempt(
        _ checkpoint: UploadCheckpoint, _ size: Int64, interruptedAfter steps: Int, using generator: inout Generator,
        _ saved: CheckpointRecorder,
        sent: (Range<Int64>) -> Void
    ) async throws {
        let progress = UploadProgress(checkpoint, from: 0, size: size, reporter: saved.reporter)
        var confirmed: Int64 = 0
        var writers = (0..<Int.random(in: 1...5, using: &generator)).map { _ in Writer() }
        for _ in 0..<steps {
            let number = Int.random(in: writers.indices, using: &generator)
            if Int.random(in: 0..<8, using: &generator) == 0 {
                try await progress.save(writers[number].positions)
                let last = try #require(saved.last.withLock { $0 })
                let stored = try #require(UploadCheckpoint(last))
                #expect(stored.isSound(last.confirmed, for: size))
                #expect(last.confirmed >= confirmed, "confirmed bytes remain confirmed")
                confirmed = last.confirmed
                #expect(stored.ranges?.reduce(0) { $0 + $1.confirmed - $1.start } == last.confirmed)
            }
            if writers[number].index == nil {
                guard let assigned = progress.assignRange() else { continue }
                writers[number].index = assigned.index
                writers[number].positions[assigned.index] = assigned.start
            }
            guard let index = writers[number].index else { continue }
            let limit = Int64.random(in: 1...3_000_000, using: &generator)
            if let claim = progress.claim(upTo: limit, of: index) {
                #expect(claim.lowerBound == writers[number].positions[index] && claim.count <= limit)
                writers[number].positions[index] = claim.upperBound
                sent(claim)
            } else {
                writers[number].index = nil
            }
        }
        if Bool.random(using: &generator) { for writer in writers { try await progress.save(writer.positions) } }
    }

    @Test func sumsRangesUpToLargestPosition() {
        var checkpoint = newCheckpoint(.max)
        checkpoint.ranges = [
            UploadCheckpoint.Range(start: 0, end: 4, confirmed: 1), UploadCheckpoint.Range(start: 4, end: .max, confirmed: .max),
        ]
        #expect(checkpoint.isSound(.max - 3, for: .max))
    }

    @Test(arguments: 0..<100) func sendsMissingBytesWithoutRepetition(seed: UInt64) async throws {
        var generator = Generator(state: seed)
        let size = Int64.random(in: 1...60_000_000, using: &generator)
        let saved = CheckpointRecorder()
        var checkpoint = newCheckpoint(size)
        for round in 0..<6 {
            var claims: [Range<Int64>] = []
            let isLast = round == 5
            try await attempt(
                checkpoint, size, interruptedAfter: isLast ? 1_500 : Int.random(in: 0...60, using: &generator), using: &generator, saved
            ) { claims.append($0) }
            claims.sort { $0.lowerBound < $1.lowerBound }
            #expect(zip(claims, claims.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }, "no byte is sent twice")
            let ranges = checkpoint.ranges ?? []
            // Bytes that a checkpoint covers are not sent again.
            for claim in claims {
                #expect(ranges.contains { $0.confirmed <= claim.lowerBound && claim.upperBound <= $0.end }, "\(claim) of \(ranges)")
            }
            if isLast {
                let rest = ranges.reduce(0) { $0 + $1.end - $1.confirmed }
                #expect(claims.reduce(0) { $0 + Int64($1.count) } == rest, "all other bytes are sent")
            }
            if let last = saved.last.withLock({ $0 }) { checkpoint = try #require(UploadCheckpoint(last)) }
        }
    }
}
