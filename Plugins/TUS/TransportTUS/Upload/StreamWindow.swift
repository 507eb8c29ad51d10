/// The policy for how many bytes of a growing stream each request sends.
///
/// The producer can be ahead of the confirmed position by a limited number of bytes, and bytes are confirmed only at the end of a request. If a
/// request sent all available bytes, the producer would have to wait for the end of the request, and the next request would find almost no bytes. A
/// request therefore sends half of the largest number of bytes by which the producer was ahead. Requests then follow each other steadily, and the
/// producer waits no longer than the network requires.
struct StreamWindow {
    /// The minimum number of bytes per request, if that many are available.
    private static let smallest: Int64 = 1 << 20

    /// The largest number of bytes by which the producer was ahead of the confirmed position.
    private var ahead: Int64 = 0
    /// The confirmed position at the start of the last request.
    private var confirmed: Int64?

    /// Returns how many of the available bytes after a confirmed offset the next request sends.
    mutating func byteCount(from offset: Int64, to end: Int64) -> Int64 {
        ahead = max(ahead, end - (confirmed ?? offset))
        confirmed = offset
        return min(end - offset, max(Self.smallest, ahead / 2))
    }
}
