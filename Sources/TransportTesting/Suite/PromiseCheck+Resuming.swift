import Foundation
import Locking
import TransferCore

extension PromiseCheck {
    func resumesAfterCut() async throws {
        // One after a first byte, one inside and one at a limit of common buffers, one before the last byte, one that loses only the answer.
        for cut in [1, 100_000, 1024 * 1024, Self.largeSize - 1, Self.largeSize] {
            let (source, content) = try makeSource(Self.largeSize)
            let path = try makePath()
            let recorder = AttemptRecorder()
            try await fixture.cut(afterBytes: Int64(cut))
            do {
                _ = try await failure("When the connection broke after \(cut) bytes") { try await send(source, as: path, recorder) }
            } catch is PromiseViolation where cut == Self.largeSize {
                // All bytes arrived: a transport may ask the other end, and find that the file is complete.
                try await requireArrived(content, as: path, "After the answer was lost")
                continue
            }
            // A server that has all of a file may well take it for complete.
            try await requireInterrupted(
                recorder, path, "After a cut at \(cut) bytes", wasBegun: cut > 1, mayBeComplete: cut == Self.largeSize)
            try await resume(source, content, as: path, after: recorder, "After a cut at \(cut) bytes")
        }
    }

    func resumesAfterCancellation() async throws {
        for allowed in [1, 1_500_000] {
            let (source, content) = try makeSource(Self.largeSize)
            let path = try makePath()
            let recorder = AttemptRecorder(allowance: allowed)
            let attempt = start(source, as: path, recorder)
            try await attempt.isHeld(by: recorder, within: deadline, of: self)
            attempt.task.cancel()
            _ = try? await attempt.value(within: deadline, of: self)
            try await requireInterrupted(recorder, path, "After a cancellation at \(allowed) bytes", mayBeComplete: false)
            try await resume(source, content, as: path, after: recorder, "After a cancellation at \(allowed) bytes")
        }
    }

    /// What an attempt that was interrupted has to leave.
    ///
    /// - Parameters:
    ///   - wasBegun: Whether the other end can know of the file; with the first byte of all, a connection may not even be open.
    ///   - mayBeComplete: Whether the other end may have all of it.
    private func requireInterrupted(
        _ recorder: AttemptRecorder, _ path: RemotePath, _ situation: String, wasBegun: Bool = true, mayBeComplete: Bool
    ) async throws {
        switch fixture.resumption {
        case .fromCheckpoint:
            guard wasBegun else { return }
            try require(!recorder.checkpoints.isEmpty, "\(situation), there is no checkpoint to go on from.")
        case .fromStart:
            let claimed = max(recorder.checkpoints.map(\.confirmed).max() ?? 0, recorder.progress.map(\.confirmed).max() ?? 0)
            try require(claimed == 0, "\(situation), \(claimed) bytes were confirmed although the file has to start over.")
            guard !mayBeComplete else { return }
            try require(try await !fixture.isComplete(path), "\(situation), the other end takes what it got for the file.")
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
        let vouched = checkpoint?.confirmed ?? 0
        try require(start >= vouched, "\(situation), it began again at \(start) though \(vouched) bytes were vouched for.")
    }

    func checkpointIsTrue() async throws {
        let fixture = fixture
        for cut in [nil, 1, 1_000_000] {
            let (source, _) = try makeSource(Self.largeSize)
            let path = try makePath()
            let untrue = Locked<(claimed: Int64, stored: Int64)?>(nil)
            let recorder = AttemptRecorder { checkpoint in
                let stored = try await fixture.storedSize(of: path)
                if checkpoint.confirmed > stored { untrue.withLock { $0 = $0 ?? (claimed: checkpoint.confirmed, stored: stored) } }
            }
            if let cut { try await fixture.cut(afterBytes: Int64(cut)) }
            do {
                try await send(source, as: path, recorder)
            } catch is TransferError where cut != nil {}
            if let untrue = untrue.withLock({ $0 }) {
                throw violation("One claimed \(untrue.claimed) bytes while the other end had \(untrue.stored).")
            }
        }
    }
}
