import Foundation
import Locking
import SystemPackage
import TransferCore

/// A source that is whole on the disk, and says that it grows, as far as a producer would who waits for confirmations.
final class GrowingSource: Sendable {
    /// How far it is ahead of what is confirmed.
    static let window: Int64 = 300_000

    let source: UploadSource
    let content: Data
    private let growth: SourceGrowth
    /// The last byte that is ever produced, and what comes then.
    private let end: SourceGrowth.Extent
    private let produced: Int64
    /// Opens when a transport waits for all of it.
    let isWhollyAwaited = Latch()

    /// - Parameters:
    ///   - failure: What the producer fails with half-way; nil if it does not.
    ///   - stops: Whether the producer says no more half-way.
    init(_ file: (source: UploadSource, content: Data), failure: TransferError? = nil, stops: Bool = false) {
        content = file.content
        let size = Int64(content.count)
        produced = failure == nil && !stops ? size : size / 2
        end = failure.map { .failed($0) } ?? (stops ? .growing(size / 2) : .complete(size))
        let confirm = Locked<@Sendable (Int64) -> Void>({ _ in })
        let produceAll = Locked<@Sendable () -> Void>({})
        growth = SourceGrowth(
            release: { offset in confirm.withLock { $0 }(offset) }, lift: { if $0 == .max { produceAll.withLock { $0 }() } })
        // What the file is at the end says nothing of a source that grows.
        let identity = SourceIdentity(size: 0, modificationTime: 0, inode: 0, device: 0, bootID: "")
        source = UploadSource(path: file.source.path, identity: identity, growth: growth)
        confirm.withLock { $0 = { [weak self] in self?.confirm($0) } }
        produceAll.withLock {
            $0 = { [weak self] in
                self?.isWhollyAwaited.open()
                self?.confirm(.max - Self.window)
            }
        }
        self.confirm(0)
    }

    /// The other end has so many bytes.
    func confirm(_ offset: Int64) {
        let reach = offset + Self.window
        if case .growing(let now) = growth.extent, min(reach, produced) > now { growth.update(.growing(min(reach, produced))) }
        if reach > produced { growth.update(end) }
    }
}

extension PromiseCheck {
    private func makeGrowingSource(_ size: Int, failure: TransferError? = nil, stops: Bool = false) throws -> GrowingSource {
        GrowingSource(try makeSource(size), failure: failure, stops: stops)
    }

    private func recorder(of growing: GrowingSource) -> AttemptRecorder {
        AttemptRecorder(onProgress: { growing.confirm($0) })
    }

    func growingSourceArrives() async throws {
        for size in [0, 1, Int(GrowingSource.window), Self.largeSize] {
            let growing = try makeGrowingSource(size)
            let (path, recorder) = (try makePath(), recorder(of: growing))
            let receipt = try await send(growing.source, as: path, recorder)
            try await requireArrived(growing.content, as: path, "Of a source that grew to \(size) bytes")
            try require(receipt.bytes == size, "For a source that grew to \(size) bytes, the receipt says \(receipt.bytes).")
            let last = recorder.progress.last?.confirmed ?? 0
            try require(size == 0 || last == Int64(size), "The last report for \(size) bytes says \(last) confirmed.")
        }
    }

    func growingSourceResumes() async throws {
        for cut in [100_000, 1_000_000] {
            let growing = try makeGrowingSource(Self.largeSize)
            let (path, recorder) = (try makePath(), recorder(of: growing))
            try await fixture.cut(afterBytes: Int64(cut))
            _ = try await failure("When the connection broke after \(cut) bytes") { try await send(growing.source, as: path, recorder) }
            try await send(growing.source, as: path, from: recorder.checkpoints.last, self.recorder(of: growing))
            try await requireArrived(growing.content, as: path, "After a cut at \(cut) bytes")
        }
    }

    func failureOfSourceIsTold() async throws {
        let error = TransferError(.sourceLost, .producerGone, "The producer failed, as a check wants it to.")
        let growing = try makeGrowingSource(Self.largeSize, failure: error)
        let path = try makePath()
        let thrown = try await failure("When the producer failed") { try await send(growing.source, as: path, recorder(of: growing)) }
        try require(thrown == error, "When the producer failed, the error was another: \(thrown)")
        try require(try await !fixture.isComplete(path), "When the producer failed, the other end takes the file for complete.")
    }

    func cancellationOfWaitingEnds() async throws {
        let growing = try makeGrowingSource(Self.largeSize, stops: true)
        // When half of it is confirmed, the attempt waits for more, or is about to; or it waits for all, to tell the length.
        let isHalfSent = growing.isWhollyAwaited
        let recorder = AttemptRecorder(onProgress: { confirmed in
            growing.confirm(confirmed)
            if confirmed >= Int64(Self.largeSize / 2) { isHalfSent.open() }
        })
        let attempt = start(growing.source, as: try makePath(), recorder)
        try await attempt.reaches(isHalfSent, within: deadline, of: self)
        attempt.task.cancel()
        try await requireCancelled(attempt, "Cancelled while it waited for its source")
    }
}
