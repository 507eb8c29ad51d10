/// Decides how many bytes of a growing stream one request sends.
///
/// The producer can be ahead of the confirmed bytes by a limited amount, and bytes are confirmed only at the end of a request. If a request sent all
/// available bytes, the next one would have almost none, because the producer had to wait. With half of that amount, requests follow each other
/// steadily, and the producer never waits longer than the network.
struct StreamWindow {
    /// Smaller amounts are not divided.
    private static let smallest: Int64 = 1 << 20

    /// The maximum number of bytes that the producer was ahead of the confirmed position.
    private var ahead: Int64 = 0
    /// The confirmed position during the last request.
    private var confirmed: Int64?

    /// Returns how many of the bytes available after a confirmed offset the next request sends.
    mutating func part(from offset: Int64, to end: Int64) -> Int64 {
        ahead = max(ahead, end - (confirmed ?? offset))
        confirmed = offset
        return min(end - offset, max(Self.smallest, ahead / 2))
    }
}
