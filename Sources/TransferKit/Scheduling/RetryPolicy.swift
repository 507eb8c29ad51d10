/// When and how often a failed attempt is repeated: exponential backoff with full jitter, so that many clients of one server do not come back
/// together.
public struct RetryPolicy: Hashable, Sendable, Codable {
    /// The upper bound of the first delay, a year at most. Default: 1 s. It doubles with each failure in a row.
    public var base: Duration

    /// The upper bound of any delay, a year at most. Default: 5 min.
    public var maximumDelay: Duration

    /// After how many failed attempts in a row at one endpoint a file is given up there, at least 1. Default: 8. A failure after progress begins
    /// a new row. Attempts that meet an outage of the server are not counted; see ``giveUpAfter``.
    public var maximumAttempts: Int

    /// How long an outage of the account's servers may last until a session that waits for one fails, at least 0 s; nil, the default, for ever.
    /// Counted in each process from the first attempt that met it.
    public var giveUpAfter: Duration?

    /// Makes a policy.
    public init(
        base: Duration = .seconds(1), maximumDelay: Duration = .seconds(300), maximumAttempts: Int = 8, giveUpAfter: Duration? = nil
    ) {
        self.base = base
        self.maximumDelay = maximumDelay
        self.maximumAttempts = maximumAttempts
        self.giveUpAfter = giveUpAfter
    }

    /// - Throws: ``QueueError`` with the code `invalidRequest`.
    func validate() throws(QueueError) {
        guard maximumAttempts >= 1, base >= .zero, maximumDelay >= .zero else {
            throw QueueError(.invalidRequest, "A file is tried at least once, and delays between attempts are not below 0 s.")
        }
        guard giveUpAfter.map({ $0 >= .zero }) ?? true else {
            throw QueueError(.invalidRequest, "A session waits for its server for at least 0 s before it fails.")
        }
        guard max(base, maximumDelay) <= Self.longestDelay else {
            throw QueueError(.invalidRequest, "The delay between two attempts is a year at most.")
        }
    }

    private static let longestDelay = Duration.seconds(366 * 24 * 3_600)

    /// No server can keep a session waiting for longer than this.
    static let longestRetryAfter = Duration.seconds(24 * 3_600)

    /// The longest delay after which a session still keeps its slot.
    package static let slotKept = Duration.seconds(1)

    /// The longest delay after an attempt that met an outage: a server that is back is noticed soon, and one that is not has no work.
    static let longestOutageDelay = Duration.seconds(10)

    /// How long to wait after a failure.
    ///
    /// - Parameters:
    ///   - failures: How many attempts failed in a row, this one included.
    ///   - retryAfter: What the server asks for; the delay is never shorter.
    ///   - isOutage: Whether the attempts met an outage.
    ///   - fraction: A random number in 0 ..< 1.
    package func delay(afterFailures failures: Int, retryAfter: Duration?, isOutage: Bool = false, fraction: Double) -> Duration {
        var bound = base
        for _ in 1..<max(failures, 1) where bound < maximumDelay {
            bound *= 2
        }
        let longest = isOutage ? min(maximumDelay, Self.longestOutageDelay) : maximumDelay
        let jittered = min(bound, longest) * fraction
        return max(jittered, min(retryAfter ?? .zero, Self.longestRetryAfter))
    }

    /// Whether the progress of an attempt is enough to begin a new row of failures: 1 MiB or 1 % of the file, if its size is known.
    package static func isProgress(confirmed: Int64, of size: Int64?) -> Bool {
        guard confirmed > 0, confirmed < 1 << 20 else { return confirmed > 0 }
        return size.map { confirmed >= $0 / 100 + min(1, $0 % 100) } ?? false
    }
}
