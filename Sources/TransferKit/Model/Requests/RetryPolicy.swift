/// When and how often the queue retries a failed attempt.
///
/// Delays use exponential backoff with full jitter: each delay is random, from 0 s to an upper bound that doubles. Therefore, the clients of a server
/// do not all retry at the same time.
public struct RetryPolicy: Hashable, Sendable, Codable {
    /// The upper bound of the first delay, from 0 s to a year. Default: 1 s. The bound doubles with each consecutive failure.
    public var base: Duration

    /// The upper bound of all delays, from 0 s to a year. Default: 5 min. A server can request a longer delay, at most 24 h.
    public var maximumDelay: Duration

    /// The maximum number of consecutive failed attempts of a file at one endpoint, at least 1. Default: 8.
    ///
    /// The count is reset when 64 KiB more of the file are confirmed, or 1 % of a file below 6.25 MiB. The count excludes attempts during an outage
    /// of the server; see ``giveUpAfter``.
    public var maximumAttempts: Int

    /// How long an outage of the account's servers may last before a waiting session fails, at least 0 s. In an outage, no connection is
    /// established, no server responds, or a proxy responds instead. Default: nil, for no limit. The time begins with the first attempt in this
    /// process that failed because of the outage.
    public var giveUpAfter: Duration?

    /// Creates a policy.
    public init(
        base: Duration = .seconds(1), maximumDelay: Duration = .seconds(300), maximumAttempts: Int = 8, giveUpAfter: Duration? = nil
    ) {
        self.base = base
        self.maximumDelay = maximumDelay
        self.maximumAttempts = maximumAttempts
        self.giveUpAfter = giveUpAfter
    }

    func validate() throws(QueueError) {
        guard maximumAttempts >= 1, base >= .zero, maximumDelay >= .zero else {
            throw QueueError(.invalidRequest, "The number of attempts must be at least 1, and delays between attempts at least 0 s.")
        }
        guard giveUpAfter.map({ $0 >= .zero }) ?? true else {
            throw QueueError(.invalidRequest, "The retry policy's giveUpAfter must be at least 0 s.")
        }
        guard max(base, maximumDelay) <= Self.longestDelay else {
            throw QueueError(.invalidRequest, "The delay between two attempts must be at most a year.")
        }
    }

    private static let longestDelay = Duration.seconds(366 * 24 * 3_600)

    /// The longest delay that a server can request.
    static let longestRetryAfter = Duration.seconds(24 * 3_600)

    /// The longest retry delay during which a session keeps its slot.
    package static let maximumInPlaceDelay = Duration.seconds(1)

    /// The longest delay after an attempt that failed because of an outage. The delay is short, so that the queue soon detects the end of
    /// the outage. Frequent attempts are harmless, because they put no load on an unreachable server.
    static let longestOutageDelay = Duration.seconds(10)

    /// The delay after a failure.
    ///
    /// - Parameters:
    ///   - failures: The number of consecutive failed attempts, including the last attempt.
    ///   - retryAfter: The delay that the server requested; more than 24 h counts as 24 h. The result is never shorter.
    ///   - isOutage: Whether the attempts failed because of an outage.
    ///   - fraction: A random number in 0 ..< 1.
    package func delay(afterFailures failures: Int, retryAfter: Duration?, isOutage: Bool = false, fraction: Double) -> Duration {
        // Stored policies are not validated. With larger values, the multiplication would overflow.
        let longest = min(max(.zero, maximumDelay), isOutage ? Self.longestOutageDelay : Self.longestDelay)
        var bound = min(max(.zero, base), Self.longestDelay)
        for _ in 1..<max(failures, 1) where bound < longest {
            bound *= 2
        }
        let jittered = min(bound, longest) * fraction
        return max(jittered, min(retryAfter ?? .zero, Self.longestRetryAfter))
    }

    /// The number of newly confirmed bytes that counts as progress in a file of any size.
    ///
    /// Without this bound, the queue would retry a file for years at a server that confirms a few bytes in each attempt, and then fails. The bound
    /// is low, because an attempt over an unreliable network may be short.
    private static let smallestProgress: Int64 = 64 << 10

    /// Whether enough bytes were confirmed to reset the count of failures: 64 KiB, or 1 % of a file below 6.25 MiB if its size is known.
    ///
    /// - Parameter confirmed: The number of bytes that were confirmed since the count was last reset. Several attempts may have sent them.
    package static func isProgress(confirmed: Int64, of size: Int64?) -> Bool {
        guard confirmed > 0, confirmed < smallestProgress else { return confirmed > 0 }
        return size.map { confirmed >= $0 / 100 + min(1, $0 % 100) } ?? false
    }
}
