import CurlEngine
import TransferCore
import TransportSupport

/// Writes the body of an answer to the part of a download, once the answer proves to be what was asked for.
final class PartSink: HTTPResponseSink {
    /// Ends a request for a file that need not be received.
    struct IsUpToDate: Error {
        var remote: RemoteFile
    }

    /// Ends a request for a file that an earlier attempt received and put in place.
    struct IsInPlace: Error {
        var writer: FileWriter
    }

    private struct State {
        var remote: RemoteFile?
        var writer: FileWriter?
        /// Up to where every byte was written.
        var position: Int64
        var confirmed: Int64
    }

    private let server: any DownloadServer
    private let destination: DownloadDestination
    private let known: RemoteFile?
    private let start: Int64
    private let needsDigest: Bool
    private let threads: WorkerThreads
    private let reporter: AttemptReporter
    private let state: Locked<State>

    /// Called with the position after each write, on a thread that may block.
    private let written: @Sendable (Int64) -> Void

    /// - Parameters:
    ///   - writer: The part that an earlier attempt left; nil to begin anew.
    ///   - known: What the server said of the file then.
    init(
        _ server: any DownloadServer, to destination: DownloadDestination, continuing writer: FileWriter?, of known: RemoteFile?,
        needsDigest: Bool, on threads: WorkerThreads, reporter: AttemptReporter, written: @escaping @Sendable (Int64) -> Void
    ) {
        self.server = server
        self.destination = destination
        self.known = known
        self.needsDigest = needsDigest
        self.threads = threads
        self.reporter = reporter
        self.written = written
        start = writer?.start ?? 0
        state = Locked(State(writer: writer, position: start, confirmed: start))
    }

    /// What the server says of the file, once its answer was accepted.
    var remote: RemoteFile? { state.withLock { $0.remote } }

    var writer: FileWriter? { state.withLock { $0.writer } }

    var position: Int64 { state.withLock { $0.position } }

    /// Notes that a checkpoint vouches for a position.
    func confirm(_ position: Int64) {
        state.withLock { state in
            state.confirmed = max(state.confirmed, position)
            reporter.report(sent: max(state.position, position), confirmed: state.confirmed)
        }
    }

    func accepts(_ head: HTTPResponseHead) throws -> Bool {
        guard head.status == 200 || head.status == 206 else { return false }
        if let coding = head.headers["Content-Encoding"], coding.lowercased() != "identity" {
            throw violation("in the coding \"\(coding.prefix(40))\", which was not asked for")
        }
        var remote = RemoteFile(head)
        if start == 0 {
            guard head.status == 200 else { throw violation("in part, when all of it was asked for") }
        } else if let known {
            if remote.differs(from: known) { throw changed() }
            if head.status == 200 {
                // It may have changed, if the server names versions; otherwise the server knows no ranges.
                guard remote.validator != nil else { throw changed() }
                server.noteIgnoredRange()
                throw TransferError(
                    .resumeLost, .uploadGone, "The server sends \(server.name) from its start only, so that it begins anew.")
            }
            guard ContentRange(head.headers)?.start == start else { throw violation("from another position than was asked for") }
            remote.length = remote.length ?? known.length
            remote.digest = remote.digest ?? known.digest
            remote.modificationTime = remote.modificationTime ?? known.modificationTime
            remote.validator = known.validator
        }
        if needsDigest, remote.digest == nil {
            throw TransferError(
                .unsupported, .unsupported, "The server tells no checksum of \(server.name), so what it sends can't be verified.")
        }
        if head.status == 200, head.headers["Accept-Ranges"]?.lowercased() == "none" || server.ignoresRanges { remote.validator = nil }
        state.withLock { $0.remote = remote }
        if let length = remote.length { reporter.report(total: length) }
        return true
    }

    func write(_ bytes: RawSpan) throws {
        let writer = try open()
        let start = position
        try unsafe bytes.withUnsafeBytes { unsafe try writer.writeNow($0, at: start) }
        let end = start + Int64(bytes.byteCount)
        state.withLock { state in
            state.position = end
            reporter.report(sent: end, confirmed: state.confirmed)
        }
        written(end)
    }

    /// Opens the part, if it is not open, once nothing speaks against it. Blocks.
    ///
    /// - Throws: ``IsUpToDate`` if the policy leaves what is there; ``IsInPlace``; a ``TransferError``.
    @discardableResult func open() throws -> FileWriter {
        let (writer, remote) = state.withLock { ($0.writer, $0.remote) }
        if let writer { return writer }
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

    private func changed() -> TransferError {
        TransferError(.resumeLost, .uploadGone, "\(server.name) is another file now than when its download began; it begins anew.")
    }

    private func violation(_ what: String) -> TransferError {
        TransferError(.protocolViolation, .badAnswer, "The server sends \(server.name) \(what).")
    }
}
