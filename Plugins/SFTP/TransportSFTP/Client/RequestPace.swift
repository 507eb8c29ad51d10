/// Limits the bytes in flight on a connection, in one direction, to the largest number that the server recently transferred in 1.25 s. The
/// limit is at least 384 KiB.
///
/// More bytes would only queue up and delay the other files on the connection. For example, a small file that needs five round trips would
/// wait for five full windows of a large file on a slow network.
package struct RequestPace: Sendable {
    private static let smallestLimit = 384 << 10
    private static let slotCount = 5
    private static let slotDuration = Duration.milliseconds(250)

    private let now: @Sendable () -> ContinuousClock.Instant
    private var slotEnd: ContinuousClock.Instant
    /// The number of bytes in each of the last five slots of 250 ms, the newest at the end.
    private var recentBytes = [Int](repeating: 0, count: RequestPace.slotCount)
    /// The highest recent rate, in bytes per 1.25 s (five slots). Decays slowly, because a server may briefly stop responding while it
    /// syncs a file.
    private var highestRate = RequestPace.smallestLimit

    /// - Parameter now: Returns the current time.
    package init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.now = now
        slotEnd = now() + Self.slotDuration
    }

    /// The maximum number of bytes in flight.
    package var limit: Int { max(highestRate, recentBytes.reduce(0, +)) }

    /// Counts bytes that the server has transferred.
    package mutating func count(_ bytes: Int) {
        let time = now()
        if time >= slotEnd {
            let passed = min(Int((time - slotEnd) / Self.slotDuration) + 1, 8 * Self.slotCount)
            for _ in 0..<passed {
                highestRate = max(Self.smallestLimit, recentBytes.reduce(0, +), highestRate / 8 * 7)
                recentBytes.removeFirst()
                recentBytes.append(0)
            }
            slotEnd = time + Self.slotDuration
        }
        recentBytes[Self.slotCount - 1] += bytes
    }
}
