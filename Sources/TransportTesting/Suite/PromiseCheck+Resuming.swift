import Foundation
import Locking
import TransferCore

extension PromiseCheck {
    func resumesAfterLostConnection() async throws {
        // The connection breaks after the first byte, inside and at the end of a typical buffer, before the last byte, and before the response.
        for cut in [1, 100_000, 1024 * 1024, Self.largeSize - 1, Self.largeSize] {
            let (source, content) = try makeSource(Self.largeSize)
            let path = try makePath()
            let recorder = AttemptRecorder()
            try await fixture.cut(afterBytes: Int64(cut))
            do {
                _ = try await failure("When the connection broke after \(cut) bytes") { try await send(source, as: path, recorder) }
            } catch is PromiseViolation where cut == Self.largeSize {
                // All bytes arrived. A transport may query the other end, find the file complete, and return a receipt.
                try await requireArrived(content, as: path, "After the response was lost")
                continue
            }
            // A server that has all bytes may consider the file complete.
            try await requireInterrupted(
                recorder, path, "After the connection broke at \(cut) bytes", mustHaveCheckpoint: cut > 1,
                mayBeComplete: cut == Self.largeSize)
            try await resume(source, content, as: path, after: recorder, "After the connection broke at \(cut) bytes")
        }
    }

    func resumesAfterCancellation() async throws {
        for allowed in [1, 1_500_000] {
            let (source, content) = try makeSource(Self.largeSize)
            let path = try makePath()
            let recorder = AttemptRecorder(allowance: allowed)
            let attempt = start(source, as: path, recorder)
            try await attempt.waitUntilHeld(by: recorder, within: deadline, of: self)
            attempt.task.cancel()
            _ = try? await attempt.value(within: deadline, of: self)
            try await requireInterrupted(recorder, path, "After a cancellation at \(allowed) bytes", mayBeComplete: false)
            try await resume(source, content, as: path, after: recorder, "After a cancellation at \(allowed) bytes")
        }
    }

    /// Checks the state after an interrupted attempt.
    ///
    /// - Parameters:
    ///   - mustHaveCheckpoint: Whether the attempt must have saved a checkpoint, if uploads resume. If the connection breaks after one byte,
    ///     the attempt may not have saved a checkpoint yet.
    ///   - mayBeComplete: Whether the other end may have the whole file.
    private func requireInterrupted(
        _ recorder: AttemptRecorder, _ path: RemotePath, _ situation: String, mustHaveCheckpoint: Bool = true, mayBeComplete: Bool
    ) async throws {
        switch fixture.resumption {
        case .fromCheckpoint:
            guard mustHaveCheckpoint else { return }
            try require(!recorder.checkpoints.isEmpty, "\(situation), there is no checkpoint to resume from.")
        case .fromStart:
            let claimed = max(recorder.checkpoints.map(\.confirmed).max() ?? 0, recorder.progress.map(\.confirmed).max() ?? 0)
            try require(claimed == 0, "\(situation), \(claimed) bytes were confirmed although the file must restart.")
            guard !mayBeComplete else { return }
            try require(try await !fixture.isComplete(path), "\(situation), the other end considers the incomplete file complete.")
        }
    }

    private func resume(
        _ source: UploadSource, _ content: Data, as path: RemotePath, after recorder: AttemptRecorder, _ situation: String
    ) async throws {
        let checkpoint = recorder.checkpoints.last
        let second = AttemptRecorder()
        try await send(source, as: path, from: checkpoint, second)
        try await requireArrived(content, as: path, situation)
        let start = second.progress.first?.sent ?? 0
        let covered = checkpoint?.confirmed ?? 0
        try require(start >= covered, "\(situation), the upload resumed at byte \(start) although its checkpoint covers \(covered).")
    }

    func checkpointIsAccurate() async throws {
        let fixture = fixture
        for cut in [nil, 1, 1_000_000] {
            let (source, _) = try makeSource(Self.largeSize)
            let path = try makePath()
            let inaccurate = Locked<(claimed: Int64, stored: Int64)?>(nil)
            let recorder = AttemptRecorder { checkpoint in
                let stored = try await fixture.storedSize(of: path)
                if checkpoint.confirmed > stored { inaccurate.withLock { $0 = $0 ?? (claimed: checkpoint.confirmed, stored: stored) } }
            }
            if let cut { try await fixture.cut(afterBytes: Int64(cut)) }
            do {
                try await send(source, as: path, recorder)
            } catch let error where cut != nil {
                try transferError(error, "After the connection was cut")
            }
            if let inaccurate = inaccurate.withLock({ $0 }) {
                throw violation("A checkpoint covers \(inaccurate.claimed) bytes, but the other end had \(inaccurate.stored).")
            }
        }
    }
}
