import CurlEngine
import Locking
import SystemPackage
import TransferCore
import TransportSupport

/// The part file of a download, and what is missing; shared by its requests.
final class DownloadPart: Sendable {
    /// Ends a request for a file that need not be downloaded.
    struct IsUpToDate: Error {
        var remote: RemoteFile
    }

    /// Ends a request for a file that an earlier attempt completed and put in place.
    struct IsInPlace: Error {
        var writer: FileWriter
    }

    /// The written bytes that a checkpoint can confirm after a sync.
    struct Extent {
        var received: ByteRanges
        /// Grows with each written byte, wherever it is.
        var mark: Int64
    }

    private struct State {
        var remote: RemoteFile?
        var writer: FileWriter?
        var received: ByteRanges
        var plan: PiecePlan
        /// The number of bytes that this attempt has written.
        var written: Int64 = 0
        var confirmed: Int64
        /// The number of threads that are writing.
        var writing = 0
        var isSealed = false
        var whenQuiet: CheckedContinuation<Void, Never>?
    }

    /// The destination if the server does not name the file.
    private let destination: DownloadDestination
    /// Whether the server names the file.
    let isNamedByServer: Bool
    /// The file according to the server's response to an earlier attempt.
    let known: RemoteFile?
    /// Yields when a checkpoint is due.
    let changes: AsyncStream<Void>
    /// Yields when the first bytes were written, so the part file is open; ends with ``endOpening()``.
    let opening: AsyncStream<Void>

    private let threads: WorkerThreads
    private let reporter: AttemptReporter
    private let state: Locked<State>
    private let change: AsyncStream<Void>.Continuation
    private let opened: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - writer: The part file of an earlier attempt; nil to start from the beginning.
    ///   - known: The file according to the server then.
    ///   - received: The bytes in that part file.
    init(
        _ destination: DownloadDestination, isNamedByServer: Bool, continuing writer: FileWriter?, of known: RemoteFile?,
        having received: ByteRanges,
        plan: PiecePlan, on threads: WorkerThreads, reporter: AttemptReporter
    ) {
        self.destination = destination
        self.isNamedByServer = isNamedByServer
        self.known = known
        self.threads = threads
        self.reporter = reporter
        (changes, change) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (opening, opened) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        state = Locked(State(writer: writer, received: received, plan: plan, confirmed: received.prefix))
    }

    /// The file according to the server, after a response of this attempt was accepted.
    var remote: RemoteFile? { state.withLock { $0.remote } }

    /// The version that all responses must have; nil while it is unknown.
    var version: RemoteFile? { state.withLock { $0.remote } ?? known }

    var writer: FileWriter? { state.withLock { $0.writer } }

    var received: ByteRanges { state.withLock { $0.received } }

    /// Nil before new bytes were written.
    var extent: Extent? {
        state.withLock { state in
            guard let writer = state.writer, state.written > 0 else { return nil }
            return Extent(received: state.received, mark: writer.start + state.written)
        }
    }

    /// The local name of the file.
    func name(of remote: RemoteFile) -> FilePath { destination.named(by: remote).name }

    // MARK: Pieces

    /// Changes the plan of further requests.
    func plan<Result>(_ body: (inout PiecePlan) -> Result) -> Result { state.withLock { body(&$0.plan) } }

    /// Notes a response's description of the file.
    func accept(_ remote: RemoteFile) {
        state.withLock { $0.remote = remote }
        if let length = remote.length { reporter.report(total: length) }
    }

    /// Notes that a checkpoint confirms a position.
    func confirm(_ position: Int64) {
        state.withLock { state in
            state.confirmed = max(state.confirmed, position)
            reporter.report(sent: state.received.count, confirmed: state.confirmed)
        }
    }

    /// Ends ``changes``, after the last request.
    func end() { change.finish() }

    /// Ends ``opening``, after the first request.
    func endOpening() { opened.finish() }

    // MARK: Content

    /// Writes bytes at an offset. Blocks.
    ///
    /// Until the part file is open, only one request may write.
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
        if isFirst { opened.yield() }
        if writer.isSyncDue(upTo: writer.start + written) { change.yield() }
    }

    /// Rejects further writes, and waits for running ones, however long the disk takes: after the attempt, only the next one touches the part
    /// file. Called once.
    func seal() async {
        await withCheckedContinuation { continuation in
            let isQuiet = state.withLock { state in
                state.isSealed = true
                if state.writing > 0 { state.whenQuiet = continuation }
                return state.writing == 0
            }
            if isQuiet { continuation.resume() }
        }
    }

    private func beginWriting() throws {
        try state.withLock { state in
            guard !state.isSealed else { throw CancellationError() }
            state.writing += 1
        }
    }

    private func endWriting() {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.writing -= 1
            guard state.writing == 0 else { return nil }
            defer { state.whenQuiet = nil }
            return state.whenQuiet
        }
        waiting?.resume()
    }

    /// Opens the part file after all checks, unless it is open. Blocks.
    ///
    /// - Throws: ``IsUpToDate`` if the policy keeps the existing file; ``IsInPlace``; a ``TransferError``.
    @discardableResult func open() throws -> FileWriter {
        let (writer, remote) = state.withLock { ($0.writer, $0.remote) }
        if let writer { return writer }
        let destination = destination.named(by: remote)
        if let remote,
            try FileWriter.isUpToDateNow(destination, size: remote.length, modificationTime: remote.modificationTime)
        {
            throw IsUpToDate(remote: remote)
        }
        let opened = try FileWriter.openNow(destination, size: remote?.length, on: threads)
        if opened.isInPlace { throw IsInPlace(writer: opened) }
        state.withLock { $0.writer = opened }
        return opened
    }
}

extension DownloadDestination {
    /// The destination with the server's name for the file, in the same folder.
    func named(by remote: RemoteFile?) -> DownloadDestination {
        guard let name = remote?.name.flatMap({ FilePath.Component($0) }), name.kind == .regular else { return self }
        return DownloadDestination(
            root: root, name: self.name.removingLastComponent().appending(name), partName: partName, overwrite: overwrite)
    }
}
