/// Decides how much of a growing stream one request has.
///
/// The producer can be ahead of the confirmed bytes by a limited amount, and a request is confirmed at its end. After a request with all
/// available bytes, the next one would have almost none, because the producer had to wait. Requests with half of that amount follow each
/// other steadily, and the producer never waits longer than the network.
struct StreamWindow {
    /// Smaller amounts are not divided.
    private static let smallest: Int64 = 1 << 20

    /// How far the producer was ahead of the confirmed bytes, at most.
    private var ahead: Int64 = 0
    /// The confirmed position during the last request.
    private var confirmed: Int64?

    /// The number of the available bytes after a confirmed offset that the next request sends.
    mutating func part(from offset: Int64, to end: Int64) -> Int64 {
        ahead = max(ahead, end - (confirmed ?? offset))
        confirmed = offset
        return min(end - offset, max(Self.smallest, ahead / 2))
    }
}
