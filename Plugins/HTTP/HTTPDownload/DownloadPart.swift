import CurlEngine
import Locking
import SystemPackage
import TransferCore
import TransportSupport

/// What there is of a file on this machine, and what is missing: shared by the requests that bring it.
final class DownloadPart: Sendable {
    /// Ends a request for a file that need not be received.
    struct IsUpToDate: Error {
        var remote: RemoteFile
    }

    /// Ends a request for a file that an earlier attempt received and put in place.
    struct IsInPlace: Error {
        var writer: FileWriter
    }

    /// What was written, as a checkpoint may vouch for it once the file is synced.
    struct Extent {
        var received: ByteRanges
        /// Grows with each byte that is written, wherever that is.
        var mark: Int64
    }

    private struct State {
        var remote: RemoteFile?
        var writer: FileWriter?
        var received: ByteRanges
        var plan: PiecePlan
        /// How many bytes were written in this attempt.
        var written: Int64 = 0
        var confirmed: Int64
    }

    /// Where the file goes if the server does not name it.
    private let destination: DownloadDestination
    /// Whether the server may name it.
    let isNamedByServer: Bool
    /// What the server said of the file when an earlier attempt asked.
    let known: RemoteFile?
    /// Yields when so much was written that a checkpoint is due.
    let changes: AsyncStream<Void>
    /// Yields when the first bytes were written, so that the part is open; ends with ``endOpening()``.
    let opening: AsyncStream<Void>

    private let threads: WorkerThreads
    private let reporter: AttemptReporter
    private let state: Locked<State>
    private let change: AsyncStream<Void>.Continuation
    private let opened: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - writer: The part that an earlier attempt left; nil to begin anew.
    ///   - known: What the server said of the file then.
    ///   - received: What that part has.
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

    /// What the server says of the file, once an answer of this attempt was accepted.
    var remote: RemoteFile? { state.withLock { $0.remote } }

    /// The version of the file that all answers have to be of; nil while nobody knows.
    var version: RemoteFile? { state.withLock { $0.remote } ?? known }

    var writer: FileWriter? { state.withLock { $0.writer } }

    var received: ByteRanges { state.withLock { $0.received } }

    /// Nil as long as nothing new was written.
    var extent: Extent? {
        state.withLock { state in
            guard let writer = state.writer, state.written > 0 else { return nil }
            return Extent(received: state.received, mark: writer.start + state.written)
        }
    }

    /// What the file will be called.
    func name(of remote: RemoteFile) -> FilePath { destination.named(by: remote).name }

    // MARK: Pieces

    /// Changes what is yet to be asked for.
    func plan<Result>(_ body: (inout PiecePlan) -> Result) -> Result { state.withLock { body(&$0.plan) } }

    /// Notes what an answer says of the file.
    func accept(_ remote: RemoteFile) {
        state.withLock { $0.remote = remote }
        if let length = remote.length { reporter.report(total: length) }
    }

    /// Notes that a checkpoint vouches for a position.
    func confirm(_ position: Int64) {
        state.withLock { state in
            state.confirmed = max(state.confirmed, position)
            reporter.report(sent: state.received.count, confirmed: state.confirmed)
        }
    }

    /// Ends ``changes``, as no more requests are under way.
    func end() { change.finish() }

    /// Ends ``opening``, as the first request has ended.
    func endOpening() { opened.finish() }

    // MARK: Content

    /// Writes bytes at an offset. Blocks.
    ///
    /// Until the part is open, only one request may bring bytes.
    func write(_ bytes: RawSpan, at offset: Int64) throws {
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

    /// Opens the part, if it is not open, once nothing speaks against it. Blocks.
    ///
    /// - Throws: ``IsUpToDate`` if the policy leaves what is there; ``IsInPlace``; a ``TransferError``.
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
    /// The destination with the name that the server gives the file, in the same folder.
    func named(by remote: RemoteFile?) -> DownloadDestination {
        guard let name = remote?.name.flatMap({ FilePath.Component($0) }), name.kind == .regular else { return self }
        return DownloadDestination(
            root: root, name: self.name.removingLastComponent().appending(name), partName: partName, overwrite: overwrite)
    }
}
