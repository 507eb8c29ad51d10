import CurlEngine
import Locking
import SystemPackage
import TransferCore

/// Writes the response to a request for one range of a file, if the response has this range or the whole file.
final class RangeSink: HTTPResponseSink {
    /// Thrown to end the first request for a range if the response has another range, or lacks the version, length or required checksum of
    /// the file. The download then requests the whole file.
    struct NeedsWholeFile: Error {}

    private struct State {
        var isAccepted = false
        /// Whether the response has only the requested range, and the request set the end of the range.
        var isRange = false
        /// The position before which all bytes of the range were written.
        var position: Int64
        /// The position after the last byte of the range; nil if it is unknown.
        var end: Int64?
        var limit = RemoteFile.maximumLength
    }

    private let range: FileRange
    private let partFile: PartFile
    private let source: DownloadSource
    private let check: DigestCheck
    private let state: Locked<State>

    init(_ range: FileRange, of partFile: PartFile, at source: DownloadSource, check: DigestCheck) {
        self.range = range
        self.partFile = partFile
        self.source = source
        self.check = check
        state = Locked(State(position: range.start, end: range.end))
    }

    var isAccepted: Bool { state.withLock { $0.isAccepted } }

    var position: Int64 { state.withLock { $0.position } }

    var offset: Int64 { position }

    /// The missing bytes of the range, for another request. Nil if no byte is missing, if the range has no end, if the version of the file
    /// is unknown, or if the response has the whole file.
    var rest: FileRange? {
        let state = state.withLock { $0 }
        guard state.isAccepted else { return range.end != nil && partFile.version != nil ? range : nil }
        guard state.isRange, let end = state.end, state.position < end else { return nil }
        return FileRange(start: state.position, end: end)
    }

    /// Checks, after the response has ended, that all its bytes arrived.
    ///
    /// - Throws: A transient ``TransferError`` for a short range, which another request can complete; otherwise a protocol violation.
    func checkEnd(of response: HTTPResponse) throws(TransferError) {
        let (position, end) = state.withLock { ($0.position, $0.end) }
        guard let end, position != end else { return }
        if response.status == 206, position < end {
            // A server may send less than was requested (RFC 9110, section 15.3.7). Another connection or the next attempt requests the
            // missing bytes.
            throw TransferError(
                .transient, .connectionLost, "A response for a range of \(source.name) ended at byte \(position) instead of byte \(end).")
        }
        throw TransferError(
            .protocolViolation, .invalidResponse, "The server declared \(end) bytes of \(source.name), but sent \(position).")
    }

    func accepts(_ head: HTTPResponseHead) throws -> Bool {
        guard head.status == 200 || head.status == 206 else { return false }
        var remote = RemoteFile(head)
        if let version = partFile.version {
            remote.name = version.name
        } else if partFile.isNamedByServer {
            remote.name = SuggestedName(head.headers)?.component.string
        }
        try checkCoding(head, of: remote)
        if let length = remote.length, length > RemoteFile.maximumLength {
            throw violation("with an implausible length of \(length) bytes")
        }
        if head.status == 200, let text = head.headers["Content-Length"], !text.isEmpty,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            Int64(text) == nil
        {
            // libcurl would read such a body until the connection closes.
            throw violation("with an implausible length of \(text.prefix(40)) bytes")
        }
        let isFirst = partFile.version == nil
        if let known = partFile.version {
            try compare(&remote, with: known, head)
        } else if head.status == 206 {
            guard range.end != nil else { throw violation("in part, although the whole file was requested") }
            // The response may have a wrong range, or lack data that later requests need. The server may still be able to send the whole
            // file.
            guard ContentRange(head.headers)?.start == 0, remote.validator != nil, remote.length != nil,
                !check.needsServerChecksum || remote.digest != nil
            else { throw NeedsWholeFile() }
        }
        try check.verify(remote, of: source.name)
        if head.status == 200, head.headers["Accept-Ranges"]?.lowercased() == "none" || source.quirks.ignoresRanges(source.file) {
            remote.validator = nil
        }
        let isRange = head.status == 206 && range.end != nil
        let end = isRange ? min(range.end ?? .max, remote.length ?? .max) : remote.length
        // A partial response reports its end, even if the request was for all remaining bytes of a file of unknown length.
        let contentEnd = head.status == 206 ? ContentRange(head.headers)?.end : nil
        let limit = min(end ?? RemoteFile.maximumLength, contentEnd ?? RemoteFile.maximumLength)
        state.withLock { $0 = State(isAccepted: true, isRange: isRange, position: range.start, end: end, limit: limit) }
        partFile.accept(remote)
        if isFirst, isRange, let end, let length = remote.length, end < length {
            partFile.plan { $0.add([end..<length], of: length) }
        }
        return true
    }

    /// Checks that a response has the known version, and adds the known properties that the response omits to `remote`.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/resumeLost`` if the file may have changed, or if the server does not send the
    ///   requested range with its version.
    private func compare(_ remote: inout RemoteFile, with known: RemoteFile, _ head: HTTPResponseHead) throws {
        if remote.differs(from: known, head.headers) { throw changed() }
        if head.status == 200 {
            // With the same validator, the server has the same version, and does not support ranges. Without a validator, the file may have changed.
            guard remote.validator != nil else { throw changed() }
            throw withoutRanges("only from its start")
        }
        // A partial response must have the same version header as a response with the whole file (RFC 9110, section 15.3.7). Without that
        // header, the version is unknown.
        guard head.headers["ETag"] != nil || known.validator?.hasPrefix("\"") != true else {
            throw withoutRanges("in part but without its version")
        }
        guard ContentRange(head.headers)?.start == range.start else { throw withoutRanges("from a position other than the requested one") }
        remote.length = remote.length ?? known.length
        remote.digest = remote.digest ?? known.digest
        remote.modificationTime = remote.modificationTime ?? known.modificationTime
        remote.validator = known.validator
    }

    func write(_ bytes: RawSpan) throws {
        let (start, limit) = state.withLock { ($0.position, $0.limit) }
        let position = start + Int64(bytes.byteCount)
        guard position <= limit else { throw violation("past byte \(limit), where the response must end") }
        try partFile.write(bytes, at: start)
        state.withLock { $0.position = position }
    }

    /// Records that the server does not support ranges of the file, and returns the error.
    private func withoutRanges(_ what: String) -> TransferError {
        source.quirks.recordIgnoredRange(source.file)
        return TransferError(.resumeLost, .uploadGone, "The server sends \(source.name) \(what), so the download must restart.")
    }

    private func changed() -> TransferError {
        source.quirks.recordChangedFile(source.file)
        return TransferError(
            .resumeLost, .uploadGone, "\(source.name) changed during the download. The download must restart.")
    }

    /// Rejects encoded content, unless the file's name has the extension of the coding. Many servers report the coding `gzip` for a file
    /// such as `reel.tar.gz`.
    private func checkCoding(_ head: HTTPResponseHead, of remote: RemoteFile) throws(TransferError) {
        guard let coding = head.headers["Content-Encoding"]?.lowercased(), !["", "identity"].contains(coding) else { return }
        let ending = partFile.name(of: remote).extension?.lowercased() ?? ""
        guard Self.endings[coding]?.contains(ending) != true else { return }
        let what = "in the coding \"\(coding.prefix(40))\", which was not requested"
        guard head.status == 200 else { throw violation(what) }
        throw TransferError(
            .unsupported, .invalidResponse,
            "The server sends \(source.name) \(what), so the content is not the file itself; use an address that serves the file without "
                + "a content coding."
        )
    }

    private static let endings: [String: Set<String>] = [
        "gzip": ["gz", "tgz", "svgz"], "x-gzip": ["gz", "tgz", "svgz"], "compress": ["z"], "x-compress": ["z"], "br": ["br"],
        "zstd": ["zst", "tzst"], "x-bzip2": ["bz2", "tbz2"], "x-xz": ["xz", "txz"],
    ]

    private func violation(_ what: String) -> TransferError {
        TransferError(.protocolViolation, .invalidResponse, "The server sends \(source.name) \(what).")
    }
}
