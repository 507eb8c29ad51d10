import CurlEngine
import Locking
import TransferCore

/// Converts the response to a `PROPFIND` request to the entries of a folder, while the response arrives.
final class ListingSink: HTTPResponseSink {
    /// The number of undelivered entries at which the transfer pauses.
    private static let maximumWaiting = 5_000
    /// The time after which a paused transfer checks the number of undelivered entries again.
    private static let retryDelay = Duration.milliseconds(5)

    private struct Parser {
        var reader = MultistatusReader()
        var folder: ListedFolder?
        var bytes: Int64 = 0
        /// Whether the requested resource is a folder; nil until the response has described it.
        var isFolder: Bool?
        var hasMembers = false
    }

    private let parser = Locked(Parser())
    private let waiting = Locked<[RemoteEntry]>([])
    private let maximumBytes: Int64
    private let failure: @Sendable (_ problem: String) -> TransferError

    /// Yields after entries have arrived.
    let arrivals: AsyncStream<Void>
    private let hasArrived: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - maximumBytes: The maximum number of bytes of the response.
    ///   - failure: Creates the error for an invalid response from the end of a sentence, such as `ends early`.
    init(maximumBytes: Int64, failure: @escaping @Sendable (_ problem: String) -> TransferError) {
        self.maximumBytes = maximumBytes
        self.failure = failure
        (arrivals, hasArrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Prepares for the response to a request. Called before each request, for example after a redirect.
    func begin(_ url: String) {
        parser.withLock { $0 = Parser(folder: ListedFolder(url: url)) }
    }

    /// Whether the start of a listing has arrived.
    var hasBegun: Bool { parser.withLock { $0.bytes > 0 } }

    func accepts(_ head: HTTPResponseHead) -> Bool { head.status == 207 }

    func write(_ bytes: RawSpan) throws {
        let received = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
        let entries = try parser.withLock { parser in
            parser.bytes = parser.bytes.addingReportingOverflow(Int64(received.count)).partialValue
            guard parser.bytes <= maximumBytes else { throw failure("is larger than \(maximumBytes) bytes") }
            do {
                return try parser.reader.read(received).compactMap { try entry($0, &parser) }
            } catch let malformed as DAVElementReader.Malformed {
                throw failure(malformed.reason)
            }
        }
        guard !entries.isEmpty else { return }
        waiting.withLock { $0 += entries }
        hasArrived.yield()
    }

    /// Returns the entry for a member of the folder; nil for the folder itself, and for a removed member.
    private func entry(_ member: MultistatusReader.Member, _ parser: inout Parser) throws -> RemoteEntry? {
        switch parser.folder?.place(of: member.href) ?? .outside {
        case .itself:
            // A status other than a success means that the server lists no members, or not all of them.
            if let status = member.status, !(200..<300).contains(status) {
                throw failure("is incomplete: the server reports status \(status) for the folder")
            }
            parser.isFolder = (parser.isFolder ?? false) || (member.isFolder ?? true)
            return nil
        case .member(let name, let endsInSlash):
            parser.hasMembers = true
            // A member with another error status exists. Its transfer reports the problem.
            guard !member.isGone else { return nil }
            return RemoteEntry(name: name, kind: member.isFolder ?? endsInSlash ? .folder : .file(size: member.size))
        case .outside:
            throw failure("contains \"\(String(decoding: member.href.prefix(200), as: UTF8.self))\", which is not directly in the folder")
        }
    }

    /// Returns the allowance for the next bytes of the response, at most `limit` bytes.
    func allowance(upTo limit: Int) -> Allowance {
        waiting.withLock { $0.count } < Self.maximumWaiting ? Allowance(bytes: limit) : Allowance(bytes: 0, retryAfter: Self.retryDelay)
    }

    /// Removes and returns up to `count` entries; nil if there are none.
    func take(_ count: Int) -> [RemoteEntry]? {
        waiting.withLock { waiting in
            guard !waiting.isEmpty else { return nil }
            defer { waiting.removeFirst(min(count, waiting.count)) }
            return Array(waiting.prefix(count))
        }
    }

    func end() { hasArrived.finish() }

    /// Checks that the response is complete.
    ///
    /// - Returns: Whether the response is the listing of a folder, not of a file.
    /// - Throws: A ``TransferError`` if the response is incomplete, or mentions neither the folder nor a member.
    func finish() throws -> Bool {
        try parser.withLock { parser in
            do throws(DAVElementReader.Malformed) { try parser.reader.finish() } catch { throw failure(error.reason) }
            // The response should contain the requested resource itself (RFC 4918, section 9.1), but a listing of only its members is accepted.
            guard parser.isFolder != nil || parser.hasMembers else { throw failure("does not mention the folder") }
            return parser.isFolder ?? true
        }
    }
}
