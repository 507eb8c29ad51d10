package import CurlEngine
import Locking
package import TransportSupport

/// Computes the SHA-256 checksum of a response's body. Declines a response with a status other than 200, and a body with a content coding,
/// because such a body is not the file itself.
package final class HashingSink: HTTPResponseSink {
    /// Thrown to end a request whose response has more bytes than expected.
    package struct ExceedsLimit: Error {}

    private let limit: Int64
    private let state = Locked((hash: RunningChecksum(.sha256), bytes: Int64(0)))

    /// - Parameter limit: The maximum number of bytes in the response's body.
    package init(upTo limit: Int64 = .max) { self.limit = limit }

    /// The checksum of the bytes that arrived so far, and their number.
    package var result: (checksum: Checksum, bytes: Int64) { state.withLock { ($0.hash.checksum, $0.bytes) } }

    package func accepts(_ head: HTTPResponseHead) -> Bool { head.status == 200 && !head.headers.hasContentCoding }

    package func write(_ bytes: RawSpan) throws {
        try state.withLock { state in
            guard Int64(bytes.byteCount) <= limit - state.bytes else { throw ExceedsLimit() }
            unsafe bytes.withUnsafeBytes { unsafe state.hash.update($0) }
            state.bytes += Int64(bytes.byteCount)
        }
    }
}
