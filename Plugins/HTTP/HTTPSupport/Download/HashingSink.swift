package import CurlEngine
import Locking
package import TransportSupport

/// Computes the SHA-256 checksum of a response's body.
package final class HashingSink: HTTPResponseSink {
    private let state = Locked((hash: RunningChecksum(.sha256), bytes: Int64(0)))

    package init() {}

    /// The checksum and the number of the bytes so far.
    package var result: (checksum: Checksum, bytes: Int64) { state.withLock { ($0.hash.checksum, $0.bytes) } }

    package func accepts(_ head: HTTPResponseHead) -> Bool { head.status == 200 }

    package func write(_ bytes: RawSpan) {
        state.withLock { state in
            unsafe bytes.withUnsafeBytes { unsafe state.hash.update($0) }
            state.bytes += Int64(bytes.byteCount)
        }
    }
}
