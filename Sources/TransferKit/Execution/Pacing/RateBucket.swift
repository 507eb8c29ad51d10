/// A token bucket for one limit. All values are in bytes and seconds.
///
/// A bucket contains free bytes and bytes that are promised to sessions. A refill adds bytes only until their sum reaches the capacity, which
/// bounds a burst.
struct RateBucket: Sendable {
    /// The time in which an empty bucket fills up, in seconds. It limits a burst to 2 % of the bytes that the limit allows in ten seconds, the period
    /// for which ``Pacer`` guarantees the limit. A transport that wakes up slightly late loses no bytes.
    private static let burst = 0.2

    private(set) var rate: Double
    /// The bytes that are not promised to a session. A new bucket has none. Otherwise, removing and setting a limit repeatedly would provide extra
    /// bytes.
    var free = 0.0
    /// The sum of the bytes promised to sessions. ``RateLimits`` updates this sum before each ``refill(at:)``.
    var promised = 0.0
    /// The number of sessions that draw from this bucket. ``RateLimits`` updates this number before each ``refill(at:)``.
    var sessionCount = 0
    private var refilledAt: Double

    // MARK: Used during one division only

    /// The bytes that remain to be divided.
    var pool = 0.0
    /// The number of sessions that take bytes from this bucket in the current round.
    var takers = 0
    /// The number of bytes that the bucket offers to each of its takers in the current round.
    var level = 0.0

    init(rate: Double, at now: Double) {
        self.rate = rate
        refilledAt = now
    }

    mutating func refill(at now: Double) {
        guard now > refilledAt else { return }
        // Even at a rate of a few bytes per second, the bucket must have room for a whole byte for each session.
        let capacity = max(rate * Self.burst, Double(sessionCount + 1))
        free = min(free + rate * (now - refilledAt), max(0, capacity - promised))
        refilledAt = now
    }

    /// Changes the rate. Call this method only while no bytes are promised to sessions. Keeps at most the free bytes that accumulate within ``burst``
    /// at the new rate.
    mutating func change(to rate: Double, at now: Double) {
        promised = 0
        refill(at: now)
        self.rate = rate
        free = min(free, rate * Self.burst)
    }
}
