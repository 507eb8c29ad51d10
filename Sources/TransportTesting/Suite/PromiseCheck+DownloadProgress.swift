import Foundation
import Locking
import SystemPackage
import TransferCore

extension PromiseCheck where Fixture: DownloadingFixture {
    // MARK: Resuming

    func downloadResumesAfterCut() async throws {
        for cut in [1, 100_000, 1024 * 1024, Self.largeSize - 1] {
            let download = try await makeDownload(Self.largeSize)
            let recorder = AttemptRecorder()
            try await fixture.cut(afterBytes: Int64(cut))
            guard try await receiveUntilInterrupted(download, recorder, "When the connection broke after \(cut) bytes") else { continue }
            try require(download.received == nil, "After the connection broke at \(cut) bytes, a file with the final name exists.")
            try await resume(download, after: recorder, "After the connection broke at \(cut) bytes")
        }
    }

    /// Runs an attempt whose connection breaks.
    ///
    /// - Returns: Whether the attempt failed. With several segments, the attempt's other connections may complete the file.
    private func receiveUntilInterrupted(_ download: Download, _ recorder: AttemptRecorder, _ situation: String) async throws -> Bool {
        guard fixture.options.segmentsPerFile > 1 else {
            _ = try await failure(situation) { try await receive(download, recorder) }
            return true
        }
        do {
            try await receive(download, recorder)
        } catch {
            try transferError(error, situation)
            return true
        }
        try requireReceived(download, situation)
        return false
    }

    func downloadResumesAfterCancellation() async throws {
        for allowed in [1, 1_500_000] {
            let download = try await makeDownload(Self.largeSize)
            let recorder = AttemptRecorder(allowance: allowed)
            let attempt = start(download, recorder)
            try await attempt.waitUntilHeld(by: recorder, within: deadline, of: self)
            attempt.task.cancel()
            _ = try? await attempt.value(within: deadline, of: self)
            try await resume(download, after: recorder, "After a cancellation at \(allowed) bytes")
        }
    }

    private func resume(_ download: Download, after recorder: AttemptRecorder, _ situation: String) async throws {
        let checkpoint = recorder.checkpoints.last
        let second = AttemptRecorder()
        try await receive(download, from: checkpoint, second)
        try requireReceived(download, situation)
        let (start, covered) = (second.progress.first?.sent ?? 0, checkpoint?.confirmed ?? 0)
        try require(start >= covered, "\(situation), the download resumed at byte \(start) although its checkpoint covers \(covered).")
    }

    func downloadCheckpointIsAccurate() async throws {
        for cut in [nil, 1, 1_000_000] {
            let download = try await makeDownload(Self.largeSize)
            let inaccurate = Locked<(claimed: Int64, stored: Int)?>(nil)
            let recorder = AttemptRecorder { checkpoint in
                guard !download.has(checkpoint.confirmed, inSegments: fixture.options.segmentsPerFile > 1) else { return }
                inaccurate.withLock { $0 = $0 ?? (claimed: checkpoint.confirmed, stored: download.partialContent?.count ?? 0) }
            }
            if let cut { try await fixture.cut(afterBytes: Int64(cut)) }
            do {
                try await receive(download, recorder)
            } catch let error where cut != nil {
                try transferError(error, "After the connection was cut")
            }
            if let inaccurate = inaccurate.withLock({ $0 }) {
                throw violation(
                    "A checkpoint covers \(inaccurate.claimed) bytes, but this machine has \(inaccurate.stored) bytes, or some of them are wrong."
                )
            }
        }
    }

    func changedFileIsNotResumed() async throws {
        let (download, checkpoint) = try await makeHalfReceivedDownload()
        let other = Self.content(Self.largeSize, seed: 99)
        try await fixture.provide(other, as: download.path)
        try await expect(.resumeLost, "When the file changed before the download was resumed") {
            try await receive(download, from: checkpoint)
        }
        try require(download.received == nil, "When the file changed, a file with the final name exists nevertheless.")
    }

    func lostPartFileIsNotResumed() async throws {
        let (download, checkpoint) = try await makeHalfReceivedDownload()
        try FileManager.default.removeItem(atPath: download.destination.partPath.string)
        try await expect(.resumeLost, "When the part file was removed") { try await receive(download, from: checkpoint) }
    }

    /// Returns an unfinished download with a checkpoint that covers at least one byte.
    private func makeHalfReceivedDownload() async throws -> (Download, Checkpoint) {
        let download = try await makeDownload(Self.largeSize)
        let recorder = AttemptRecorder(allowance: 2_000_000)
        let attempt = start(download, recorder)
        try await attempt.waitUntilHeld(by: recorder, within: deadline, of: self)
        attempt.task.cancel()
        _ = try? await attempt.value(within: deadline, of: self)
        if let checkpoint = recorder.checkpoints.last, checkpoint.confirmed > 0 { return (download, checkpoint) }
        // A cancelled attempt may end without a checkpoint for its received bytes. An attempt whose connection broke must save one.
        let other = try await makeDownload(Self.largeSize)
        let second = AttemptRecorder()
        try await fixture.cut(afterBytes: 2_000_000)
        _ = try await failure("When the connection broke after 2,000,000 bytes") { try await receive(other, second) }
        guard let checkpoint = second.checkpoints.last, checkpoint.confirmed > 0 else {
            throw violation("When the connection broke after 2,000,000 bytes, no checkpoint covers any bytes.")
        }
        return (other, checkpoint)
    }

    // MARK: Progress

    func downloadProgressNeverDecreases() async throws {
        let download = try await makeDownload(Self.largeSize)
        let first = AttemptRecorder()
        try await fixture.cut(afterBytes: 2_000_000)
        let second = AttemptRecorder()
        if try await receiveUntilInterrupted(download, first, "When the connection broke") {
            try await receive(download, from: first.checkpoints.last, second)
        }
        for recorder in [first, second] {
            for (earlier, later) in zip(recorder.progress, recorder.progress.dropFirst()) {
                try require(later.sent >= earlier.sent, "The number of received bytes fell from \(earlier.sent) to \(later.sent).")
                try require(
                    later.confirmed >= earlier.confirmed,
                    "The number of confirmed bytes fell from \(earlier.confirmed) to \(later.confirmed).")
            }
        }
    }

    func downloadProgressEndsAtSize() async throws {
        for size in [1, 100_000, Self.largeSize] {
            let recorder = AttemptRecorder()
            try await receive(makeDownload(size), recorder)
            let last = recorder.progress.last
            try require(
                last?.sent == Int64(size) && last?.confirmed == Int64(size),
                "The last report for \(size) bytes has \(last?.sent ?? 0) received and \(last?.confirmed ?? 0) confirmed bytes.")
        }
    }

    func downloadRateLimitIsRespected() async throws {
        for allowed in [1, 100_000] {
            let download = try await makeDownload(Self.largeSize)
            let recorder = AttemptRecorder(allowance: allowed)
            let attempt = start(download, recorder)
            try await attempt.waitUntilHeld(by: recorder, within: deadline, of: self)
            // With several segments, the part file has gaps, so its size is not the number of received bytes.
            let size = fixture.options.segmentsPerFile > 1 ? 0 : Int64(download.partialContent?.count ?? 0)
            let received = max(size, recorder.progress.map(\.sent).max() ?? 0)
            try require(received <= allowed, "\(received) bytes were received, but only \(allowed) were allowed.")
            recorder.allowAll()
            _ = try await attempt.value(within: deadline, of: self)
            try requireReceived(download, "After the limit was removed")
        }
    }

    func downloadCancellationEnds() async throws {
        let recorder = AttemptRecorder(allowance: 100_000)
        let held = start(try await makeDownload(Self.largeSize), recorder)
        try await held.waitUntilHeld(by: recorder, within: deadline, of: self)
        held.task.cancel()
        try await requireCancelled(held, "After a cancellation half-way")

        let early = start(try await makeDownload(Self.largeSize), AttemptRecorder(allowance: 0))
        early.task.cancel()
        try await requireCancelled(early, "After a cancellation at its start")
    }
}
