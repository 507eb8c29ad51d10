import CurlEngine
import Locking
import SystemPackage
import TransferCore
import TransportSupport

/// The part file of a download, with the received ranges and the plan for the missing ones. All requests of the download share one instance.
final class PartFile: Sendable {
    /// Thrown to end the request if the overwrite policy keeps the existing file. The download is then not needed.
    struct IsUpToDate: Error {
        var remote: RemoteFile
    }

    /// Thrown to end the request if an earlier attempt has already completed the file and moved it into place.
    struct IsInPlace: Error {
        var writer: FileWriter
    }

    /// The bytes that this attempt and earlier attempts have written. After a sync, a checkpoint can confirm these bytes.
    struct Extent {
        var received: ByteRanges
        /// The position to pass to `FileWriter.sync(upTo:)`. Grows with each written byte, even if ranges are written out of order.
        var syncPosition: Int64
    }

    private struct State {
        var remote: RemoteFile?
        var writer: FileWriter?
        var received: ByteRanges
        var plan: RangePlan
        var written: Int64 = 0
        /// The position before which a checkpoint confirms all bytes.
        var confirmed: Int64
        var writing = 0
        var isSealed = false
        /// Resumes ``seal()``.
        var sealWaiter: CheckedContinuation<Void, Never>?
    }

    /// The destination. If the server names the file, only the folder is known in advance.
    private let destination: DownloadDestination
    let isNamedByServer: Bool
    /// The server's description of the file in a response to an earlier attempt.
    let known: RemoteFile?
    let checkpointsDue: AsyncStream<Void>
    /// Yields once, after the first write, when the part file is open. ``endOpened()`` ends the stream.
    let opened: AsyncStream<Void>

    private let threads: WorkerThreads
    private let reporter: AttemptReporter
    private let state: Locked<State>
    private let checkpointsDueContinuation: AsyncStream<Void>.Continuation
    private let openedContinuation: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - writer: The part file of an earlier attempt; nil to start from the beginning.
    ///   - known: The server's description of the file when the earlier attempt wrote the part file.
    ///   - received: The ranges that the part file contains.
    init(
        _ destination: DownloadDestination, isNamedByServer: Bool, continuing writer: FileWriter?, of known: RemoteFile?,
        having received: ByteRanges,
        plan: RangePlan, on threads: WorkerThreads, reporter: AttemptReporter
    ) {
        self.destination = destination
        self.isNamedByServer = isNamedByServer
        self.known = known
        self.threads = threads
        self.reporter = reporter
        (checkpointsDue, checkpointsDueContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (opened, openedContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        state = Locked(State(writer: writer, received: received, plan: plan, confirmed: received.prefix))
    }

    /// The server's description of the file, after this attempt has accepted a response.
    var remote: RemoteFile? { state.withLock { $0.remote } }

    /// The version of the file that all responses must have; nil while it is unknown.
    var version: RemoteFile? { state.withLock { $0.remote } ?? known }

    var writer: FileWriter? { state.withLock { $0.writer } }

    var received: ByteRanges { state.withLock { $0.received } }

    /// The bytes that the part file contains; nil before this attempt has written any.
    var extent: Extent? {
        state.withLock { state in
            guard let writer = state.writer, state.written > 0 else { return nil }
            return Extent(received: state.received, syncPosition: writer.start + state.written)
        }
    }

    func name(of remote: RemoteFile) -> FilePath { destination.named(by: remote).name }

    // MARK: Ranges

    func plan<Result>(_ body: (inout RangePlan) -> Result) -> Result { state.withLock { body(&$0.plan) } }

    /// Stores a response's description of the file.
    func accept(_ remote: RemoteFile) {
        state.withLock { $0.remote = remote }
        if let length = remote.length { reporter.report(total: length) }
    }

    /// Reports to the queue that a checkpoint confirms the bytes before a position.
    func confirm(_ position: Int64) {
        state.withLock { state in
            state.confirmed = max(state.confirmed, position)
            reporter.report(sent: state.received.count, confirmed: state.confirmed)
        }
    }

    /// Ends ``checkpointsDue``, after the last request.
    func endCheckpointsDue() { checkpointsDueContinuation.finish() }

    /// Ends ``opened``, after the first request.
    func endOpened() { openedContinuation.finish() }

    // MARK: Content

    /// Writes bytes at an offset. Blocks.
    ///
    /// Until the part file is open, only one request may write.
    ///
    /// - Throws: `CancellationError` after ``seal()``, or the errors of ``open()``.
    func write(_ bytes: RawSpan, at offset: Int64) throws {
        try beginWriting()
        defer { endWriting() }
        let writer = try open()
        try unsafe bytes.withUnsafeBytes { unsafe try writer.writeNow($0, at: offset) }
        let count = Int64(bytes.byteCount)
        let (written, isFirst) = state.withLock { state in
            defer { state.written += count }
            state.received.insert(offset..<offset + count)
            reporter.report(sent: state.received.count, confirmed: state.confirmed)
            return (state.written + count, state.written == 0)
        }
        if isFirst { openedContinuation.yield() }
        if writer.isSyncDue(upTo: writer.start + written) { checkpointsDueContinuation.yield() }
    }

    /// Rejects further writes, and waits for running writes, however long the disk takes. Afterwards, this attempt no longer writes to the
    /// part file, so the next attempt can use it. Call this method once.
    func seal() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                state.isSealed = true
                if state.writing > 0 { state.sealWaiter = continuation }
                return state.writing == 0
            }
            if isIdle { continuation.resume() }
        }
    }

    private func beginWriting() throws {
        try state.withLock { state in
            guard !state.isSealed else { throw CancellationError() }
            state.writing += 1
        }
    }

    private func endWriting() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.writing -= 1
            guard state.writing == 0 else { return nil }
            defer { state.sealWaiter = nil }
            return state.sealWaiter
        }
        waiter?.resume()
    }

    /// Checks the destination and opens the part file, or returns the writer if the part file is already open. Blocks.
    ///
    /// - Throws: ``IsUpToDate`` if the overwrite policy keeps the existing file, ``IsInPlace``, or a ``TransferError``.
    @discardableResult func open() throws -> FileWriter {
        let (writer, remote) = state.withLock { ($0.writer, $0.remote) }
        if let writer { return writer }
        let destination = destination.named(by: remote)
        if let remote,
            try FileWriter.isUpToDateNow(destination, size: remote.length, modificationTime: remote.modificationTime)
        {
            throw IsUpToDate(remote: remote)
        }
        let newWriter = try FileWriter.openNow(destination, size: remote?.length, on: threads)
        if newWriter.isInPlace { throw IsInPlace(writer: newWriter) }
        state.withLock { $0.writer = newWriter }
        return newWriter
    }
}

extension DownloadDestination {
    /// The destination in the same folder, with the name that the server suggests for the file; the same destination if there is no valid name.
    func named(by remote: RemoteFile?) -> DownloadDestination {
        guard let name = remote?.name.flatMap({ FilePath.Component($0) }), name.kind == .regular else { return self }
        return DownloadDestination(
            root: root, name: self.name.removingLastComponent().appending(name), partName: partName, overwrite: overwrite)
    }
}
