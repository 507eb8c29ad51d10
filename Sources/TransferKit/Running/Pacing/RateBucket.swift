/// A token bucket: what one limit lets through. All in bytes and seconds.
///
/// It holds ``free`` bytes and those that are promised to sessions; both together never exceed its capacity, which is what bounds a burst.
struct RateBucket: Sendable {
    /// How much of a rate may gather while nobody takes it: 2 % of ten seconds, and enough to make up for a transport that wakes late.
    private static let burst = 0.2

    private(set) var rate: Double
    /// What is there and promised to nobody. Empty at first, so that lifting and setting a limit again and again gains nothing.
    var free = 0.0
    /// The sum of what sessions were promised, and their number, as counted for ``refill(at:)``.
    var promised = 0.0
    var lanes = 0
    private var refilledAt: Double

    // For one division only: what is left to be dealt out, to how many, and how much to each.
    var pool = 0.0
    var takers = 0
    var level = 0.0

    init(rate: Double, at now: Double) {
        self.rate = rate
        refilledAt = now
    }

    mutating func refill(at now: Double) {
        guard now > refilledAt else { return }
        // At a few bytes a second, each session must be able to gather a whole byte all the same.
        let capacity = max(rate * Self.burst, Double(lanes + 1))
        free = min(free + rate * (now - refilledAt), max(0, capacity - promised))
        refilledAt = now
    }

    /// Changes the rate while nothing is promised. Keeps no more than the new rate would have let gather.
    mutating func change(to rate: Double, at now: Double) {
        promised = 0
        refill(at: now)
        self.rate = rate
        free = min(free, rate * Self.burst)
    }
}
