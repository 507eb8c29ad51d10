package import CurlEngine
import Foundation
import TransferCore

/// What a server said of a file when it began to send it; what a checkpoint holds of a download.
package struct RemoteFile: Codable, Sendable, Hashable {
    /// What no file system of today holds, 64 PiB: a length above it is a server's mistake, and sums of lengths below it do not overflow.
    static let maximumLength: Int64 = 1 << 56

    /// What tells this version of the file from any other, byte for byte, as the server wrote it: a strong entity tag, or the time of the last
    /// change where that is one (RFC 9110, section 8.8). Nil if it gave neither.
    var validator: String?
    /// In bytes; nil if the server does not say.
    var length: Int64?
    /// In nanoseconds since 1970.
    var modificationTime: Int64?
    /// The checksum of the whole file.
    var digest: ContentDigest?
    /// What it is to be called here; nil for what was asked for.
    var name: String?
    /// What a checkpoint vouches for besides the bytes up to its position: what several requests at once brought. Nil for nothing.
    private var received: ByteRanges?

    init(_ head: HTTPResponseHead) { self.init(status: head.status, headers: head.headers) }

    init(status: Int, headers: HTTPHeaders) {
        let changed = headers["Last-Modified"].flatMap(secondsSince1970(ofHTTPDate:))
        // Nanoseconds end in the year 2262, HTTP's dates in 9999.
        modificationTime = changed.flatMap { seconds in
            let (time, isBeyond) = Int64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
            return isBeyond ? nil : time
        }
        length = Self.length(status: status, headers: headers)
        digest = ContentDigest(headers, isWhole: status == 200)
        if let tag = headers["ETag"], tag.hasPrefix("\"") {
            validator = tag
        } else if let changed, let now = headers["Date"].flatMap(secondsSince1970(ofHTTPDate:)), now > changed {
            // A file that changed in this very second may change once more in it (RFC 9110, section 8.8.2.2).
            validator = headers["Last-Modified"]
        }
    }

    /// How long a file is in bytes by the answer to a `GET` of all of it or a part; nil if the answer does not say.
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

    /// What a checkpoint vouches for that was made of this.
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

    /// Whether this can't be the version that an earlier answer told of.
    ///
    /// - Parameter headers: Those of the answer: what is too weak to tell a version can tell that it is another one.
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

/// Which part of a file an answer holds (RFC 9110, section 14.4).
struct ContentRange {
    /// nil if the server could send none.
    var start: Int64?
    /// After the last byte; nil as ``start``.
    var end: Int64?
    /// nil if the server does not know.
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
