import Foundation
import Locking
import SystemPackage
import TransferCore

/// A growing source for tests. The source's file is complete on disk, but the source reports growth like a producer that waits for confirmations.
final class GrowingSource: Sendable {
    /// The maximum number of unconfirmed bytes that the producer provides, unless the transport waits for the whole source
    /// (``SourceGrowth/waitUntilComplete()``).
    static let window: Int64 = 300_000

    let source: UploadSource
    let content: Data
    private let growth: SourceGrowth
    /// The state that the source reports after the last produced byte.
    private let end: SourceGrowth.Extent
    /// The number of bytes that the producer provides in total.
    private let produced: Int64
    /// Opens when the transport has confirmed all produced bytes, or waits for the whole source.
    let isExhausted = Latch()

    /// - Parameters:
    ///   - failure: The error with which the producer fails half-way; nil for no failure.
    ///   - stops: Whether the producer stops half-way without reporting an end.
    init(_ file: (source: UploadSource, content: Data), failure: TransferError? = nil, stops: Bool = false) {
        content = file.content
        let size = Int64(content.count)
        produced = failure == nil && !stops ? size : size / 2
        end = failure.map { .failed($0) } ?? (stops ? .growing(size / 2) : .complete(size))
        let confirm = Locked<@Sendable (Int64) -> Void>({ _ in })
        let produceAll = Locked<@Sendable () -> Void>({})
        growth = SourceGrowth(
            release: { offset in confirm.withLock { $0 }(offset) }, lift: { if $0 == .max { produceAll.withLock { $0 }() } })
        // Transports must ignore the identity of a growing source, so this identity is invalid.
        let identity = SourceIdentity(size: 0, modificationTime: 0, inode: 0, device: 0, bootID: "")
        source = UploadSource(path: file.source.path, identity: identity, growth: growth)
        confirm.withLock { $0 = { [weak self] in self?.confirm($0) } }
        produceAll.withLock {
            $0 = { [weak self] in self?.confirm(.max - Self.window) }
        }
        self.confirm(0)
    }

    /// Confirms all bytes before an offset, so that the producer provides more bytes.
    func confirm(_ offset: Int64) {
        let reach = offset + Self.window
        if case .growing(let now) = growth.extent, min(reach, produced) > now { growth.update(.growing(min(reach, produced))) }
        if reach > produced { growth.update(end) }
        if offset >= produced { isExhausted.open() }
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
            try await requireArrived(growing.content, as: path, "For a source that grew to \(size) bytes")
            try require(receipt.bytes == size, "For a source that grew to \(size) bytes, the receipt contains the size \(receipt.bytes).")
            let last = recorder.progress.last?.confirmed ?? 0
            try require(size == 0 || last == Int64(size), "The last progress report for \(size) bytes has \(last) confirmed bytes.")
        }
    }

    func growingSourceResumes() async throws {
        for cut in [100_000, 1_000_000] {
            let growing = try makeGrowingSource(Self.largeSize)
            let (path, recorder) = (try makePath(), recorder(of: growing))
            try await fixture.cut(afterBytes: Int64(cut))
            _ = try await failure("When the connection broke after \(cut) bytes") { try await send(growing.source, as: path, recorder) }
            try await send(growing.source, as: path, from: recorder.checkpoints.last, self.recorder(of: growing))
            try await requireArrived(growing.content, as: path, "After the connection broke at \(cut) bytes")
        }
    }

    func sourceFailureIsReported() async throws {
        let error = TransferError(.sourceLost, .producerGone, "The producer failed for the test.")
        let growing = try makeGrowingSource(Self.largeSize, failure: error)
        let path = try makePath()
        let thrown = try await failure("When the producer failed") { try await send(growing.source, as: path, recorder(of: growing)) }
        try require(thrown == error, "When the producer failed, the attempt threw a different error: \(thrown)")
        try require(try await !fixture.isComplete(path), "When the producer failed, the other end considers the file complete.")
    }

    func cancellationOfWaitingEnds() async throws {
        let growing = try makeGrowingSource(Self.largeSize, stops: true)
        let attempt = start(growing.source, as: try makePath(), recorder(of: growing))
        try await attempt.waitUntilReached(growing.isExhausted, within: deadline, of: self)
        attempt.task.cancel()
        try await requireCancelled(attempt, "After a cancellation while the attempt waited for its source")
    }
}
