import CurlEngine
import Locking
import SystemPackage
import TransferCore

/// Takes the answer to a request for one piece of a file, once it proves to be what was asked for.
final class PieceSink: HTTPResponseSink {
    /// Ends a request for a piece of a file that can only be had as a whole: its version has no name, or its length or checksum is not told.
    struct MustBeWhole: Error {}

    private struct State {
        var isAccepted = false
        /// Whether the answer is no more than the piece.
        var isPiece = false
        /// Up to where every byte was written.
        var position: Int64
        /// Up to where bytes are to come; nil if nobody knows.
        var end: Int64?
        /// Up to where the answer may bring bytes.
        var limit = RemoteFile.maximumLength
    }

    private let piece: Piece
    private let part: DownloadPart
    private let server: any DownloadServer
    private let check: DigestCheck
    private let state: Locked<State>

    init(_ piece: Piece, of part: DownloadPart, at server: any DownloadServer, check: DigestCheck) {
        self.piece = piece
        self.part = part
        self.server = server
        self.check = check
        state = Locked(State(position: piece.start, end: piece.end))
    }

    /// Whether the answer was what was asked for.
    var isAccepted: Bool { state.withLock { $0.isAccepted } }

    var position: Int64 { state.withLock { $0.position } }

    var offset: Int64 { position }

    /// What another request is to ask for, as it has not come; nil if nothing is missing, or only all of the file can be asked for.
    var rest: Piece? {
        let state = state.withLock { $0 }
        guard state.isAccepted else { return piece.end != nil && part.version != nil ? piece : nil }
        guard state.isPiece, let end = state.end, state.position < end else { return nil }
        return Piece(start: state.position, end: end)
    }

    /// Makes sure that all has come, once the answer is complete.
    func checkEnd(of answer: HTTPResponse) throws(TransferError) {
        let (position, end) = state.withLock { ($0.position, $0.end) }
        guard let end, position != end else { return }
        if answer.status == 206, position < end {
            // It may send less than was asked for (RFC 9110, section 15.3.7); the next attempt goes on behind that.
            throw TransferError(.transient, .connectionLost, "The server sent \(server.name) up to byte \(position) only.")
        }
        throw TransferError(.protocolViolation, .badAnswer, "The server said that \(server.name) has \(end) bytes, and sent \(position).")
    }

    func accepts(_ head: HTTPResponseHead) throws -> Bool {
        guard head.status == 200 || head.status == 206 else { return false }
        var remote = RemoteFile(head)
        if let version = part.version {
            remote.name = version.name
        } else if part.isNamedByServer {
            remote.name = SuggestedName(head.headers)?.component.string
        }
        try checkCoding(head, of: remote)
        if let length = remote.length, length > RemoteFile.maximumLength {
            throw violation("with a length of \(length) bytes, which cannot be")
        }
        let isFirst = part.version == nil
        if let known = part.version {
            try compare(&remote, with: known, head)
        } else if head.status == 206 {
            guard piece.end != nil else { throw violation("in part, when all of it was asked for") }
            // Where its words of the position make no sense, a whole file may be had of it all the same.
            guard ContentRange(head.headers)?.start == 0, remote.validator != nil, remote.length != nil,
                !check.needsServer || remote.digest != nil
            else { throw MustBeWhole() }
        }
        try check.verify(remote, of: server.name)
        if head.status == 200, head.headers["Accept-Ranges"]?.lowercased() == "none" || server.quirks.ignoresRanges(server.file) {
            remote.validator = nil
        }
        let isPiece = head.status == 206 && piece.end != nil
        let end = isPiece ? min(piece.end ?? .max, remote.length ?? .max) : remote.length
        // An answer in part says where it ends, also when the rest of the file was asked for and its length is unknown.
        let partEnd = head.status == 206 ? ContentRange(head.headers)?.end : nil
        let limit = min(end ?? RemoteFile.maximumLength, partEnd ?? RemoteFile.maximumLength)
        state.withLock { $0 = State(isAccepted: true, isPiece: isPiece, position: piece.start, end: end, limit: limit) }
        part.accept(remote)
        if isFirst, isPiece, let end, let length = remote.length, end < length {
            part.plan { $0.add([end..<length], of: length) }
        }
        return true
    }

    /// Makes sure that an answer is of the version that was received in part, and tells what it leaves out.
    private func compare(_ remote: inout RemoteFile, with known: RemoteFile, _ head: HTTPResponseHead) throws {
        if remote.differs(from: known, head.headers) { throw changed() }
        if head.status == 200 {
            // It may have changed, if the server names versions; otherwise the server knows no ranges.
            guard remote.validator != nil else { throw changed() }
            throw withoutRanges("from its start only")
        }
        // An answer in part names the version if that to the whole file did (RFC 9110, section 15.3.7): without, nobody vouches for it.
        guard head.headers["ETag"] != nil || known.validator?.hasPrefix("\"") != true else {
            throw withoutRanges("in part without its version's name")
        }
        guard ContentRange(head.headers)?.start == piece.start else { throw withoutRanges("from another position than was asked for") }
        remote.length = remote.length ?? known.length
        remote.digest = remote.digest ?? known.digest
        remote.modificationTime = remote.modificationTime ?? known.modificationTime
        remote.validator = known.validator
    }

    func write(_ bytes: RawSpan) throws {
        let (start, limit) = state.withLock { ($0.position, $0.limit) }
        let position = start + Int64(bytes.byteCount)
        guard position <= limit else { throw violation("beyond the byte \(limit), where the answer had to end") }
        try part.write(bytes, at: start)
        state.withLock { $0.position = position }
    }

    /// The file is not asked for in parts any more.
    private func withoutRanges(_ what: String) -> TransferError {
        server.quirks.noteIgnoredRange(server.file)
        return TransferError(.resumeLost, .uploadGone, "The server sends \(server.name) \(what), so it has to begin anew.")
    }

    private func changed() -> TransferError {
        server.quirks.noteChange(server.file)
        return TransferError(
            .resumeLost, .uploadGone, "\(server.name) is another file now than when its download began; it has to begin anew.")
    }

    /// Refuses content that is not the file itself but a coding of it. The coding of a file that has its name from it is the file: servers that go by
    /// names tell of `reel.tar.gz` that it is in the coding `gzip`.
    private func checkCoding(_ head: HTTPResponseHead, of remote: RemoteFile) throws(TransferError) {
        guard let coding = head.headers["Content-Encoding"]?.lowercased(), !["", "identity"].contains(coding) else { return }
        let ending = part.name(of: remote).extension?.lowercased() ?? ""
        guard Self.endings[coding]?.contains(ending) != true else { return }
        let what = "in the coding \"\(coding.prefix(40))\", which was not asked for"
        guard head.status == 200 else { throw violation(what) }
        throw TransferError(
            .unsupported, .badAnswer,
            "The server sends \(server.name) \(what), so it is not the file itself; ask for an address that gives it as it is."
        )
    }

    /// How the names of files end that were made by a coding.
    private static let endings: [String: Set<String>] = [
        "gzip": ["gz", "tgz", "svgz"], "x-gzip": ["gz", "tgz", "svgz"], "compress": ["z"], "x-compress": ["z"], "br": ["br"],
        "zstd": ["zst", "tzst"], "x-bzip2": ["bz2", "tbz2"], "x-xz": ["xz", "txz"],
    ]

    private func violation(_ what: String) -> TransferError {
        TransferError(.protocolViolation, .badAnswer, "The server sends \(server.name) \(what).")
    }
}
