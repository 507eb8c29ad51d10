package import CurlEngine
import Foundation
import TransferCore
import TransportSupport

/// A server's description of a file. A download's checkpoint contains this description.
package struct RemoteFile: Codable, Sendable, Hashable {
    /// The largest plausible length, 64 PiB. Sums of smaller lengths do not overflow.
    static let maximumLength: Int64 = 1 << 56

    /// The strong validator of this version of the file (RFC 9110, section 8.8): a strong entity tag, or a modification time that counts as strong.
    /// Nil if the server sends neither, or does not send ranges of the file.
    var validator: String?
    /// The length in bytes; nil if the server does not send it.
    var length: Int64?
    /// The modification time in nanoseconds since 1970; nil if the server does not send it.
    var modificationTime: Int64?
    var digest: Checksum?
    /// The local name that the server suggests; nil for the name of the destination.
    var name: String?
    /// The received ranges, if parallel requests received bytes after the checkpoint's position; otherwise nil.
    private var received: ByteRanges?

    init(_ head: HTTPResponseHead) { self.init(status: head.status, headers: head.headers) }

    init(status: Int, headers: HTTPHeaders) {
        let changed = headers["Last-Modified"].flatMap(secondsSince1970(ofHTTPDate:))
        // 64-bit nanoseconds since 1970 can represent dates until the year 2262, but HTTP dates extend to 9999.
        modificationTime = changed.flatMap { seconds in
            let (time, overflow) = Int64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
            return overflow ? nil : time
        }
        length = Self.length(status: status, headers: headers)
        digest = Checksum(headers, isWhole: status == 200)
        if let tag = headers["ETag"], tag.hasPrefix("\"") {
            validator = tag
        } else if let changed, let now = headers["Date"].flatMap(secondsSince1970(ofHTTPDate:)), now > changed {
            // A modification time identifies a version only after its second has passed, because a file may change twice in one second (RFC 9110,
            // section 8.8.2.2).
            validator = headers["Last-Modified"]
        }
    }

    /// The length of a file in bytes, from the response to a `GET` of the whole file or of a range; nil if the length is unknown.
    package static func length(status: Int, headers: HTTPHeaders) -> Int64? {
        switch status {
        case 200: headers["Content-Length"].flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
        case 206, 416: ContentRange(headers)?.total
        default: nil
        }
    }

    init?(_ checkpoint: Checkpoint) {
        guard let stored = try? JSONDecoder().decode(RemoteFile.self, from: checkpoint.data),
            stored.length.map({ (0...Self.maximumLength).contains($0) }) ?? true
        else { return nil }
        self = stored
    }

    /// Returns the ranges that a checkpoint with this description confirms.
    func received(upTo position: Int64) -> ByteRanges {
        guard var received else { return ByteRanges(upTo: position) }
        received.insert(0..<position)
        return received
    }

    func checkpoint(of received: ByteRanges) throws -> Checkpoint {
        var remote = self
        remote.received = received == ByteRanges(upTo: received.prefix) ? nil : received
        return Checkpoint(data: try JSONEncoder().encode(remote), confirmed: received.prefix)
    }

    /// Returns whether this description and an earlier one certainly describe different versions of the file.
    ///
    /// - Parameter headers: The response's headers. A weak validator in them can't identify a version, but it can show a difference.
    func differs(from earlier: RemoteFile, _ headers: HTTPHeaders) -> Bool {
        if let known = earlier.validator {
            if let validator, validator != known { return true }
            if known.hasPrefix("\"") {
                if let tag = headers["ETag"], tag != known { return true }
            } else if let modificationTime, let before = earlier.modificationTime, modificationTime != before {
                return true
            }
        }
        if let length, let known = earlier.length, length != known { return true }
        return false
    }
}

/// The range of a file in a response (RFC 9110, section 14.4).
struct ContentRange {
    /// The position of the first byte; nil if the server could not send the requested range.
    var start: Int64?
    /// The position after the last byte; nil if ``start`` is nil.
    var end: Int64?
    /// The length of the file; nil if the server does not know it.
    var total: Int64?

    init?(_ headers: HTTPHeaders) {
        guard let value = headers["Content-Range"], value.lowercased().hasPrefix("bytes ") else { return nil }
        let parts = value.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        total = Int64(parts[1])
        guard parts[1] == "*" || total.map({ $0 >= 0 }) ?? false else { return nil }
        guard parts[0] != "*" else { return }
        let bounds = parts[0].split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
        guard bounds.count == 2, let first = bounds[0], let last = bounds[1], first <= last, total.map({ last < $0 }) ?? true else {
            return nil
        }
        start = first
        end = last < .max ? last + 1 : last
    }
}
