package import TransferCore

/// When and how often a failed attempt is repeated: exponential backoff with full jitter, so that many clients of one server do not come back
/// together.
public struct RetryPolicy: Hashable, Sendable, Codable {
    /// The upper bound of the first delay. Default: 1 s. It doubles with each failure in a row.
    public var base: Duration

    /// The upper bound of any delay. Default: 5 min.
    public var maximumDelay: Duration

    /// After how many failed attempts in a row a file is given up, at least 1. Default: 8. A failure after progress begins a new row.
    public var maximumAttempts: Int

    /// Makes a policy.
    public init(base: Duration = .seconds(1), maximumDelay: Duration = .seconds(300), maximumAttempts: Int = 8) {
        self.base = base
        self.maximumDelay = maximumDelay
        self.maximumAttempts = maximumAttempts
    }

    /// No server can keep a session waiting for longer than this.
    static let longestRetryAfter = Duration.seconds(24 * 3_600)

    /// The longest delay after which a session still keeps its slot.
    package static let slotKept = Duration.seconds(1)

    /// How long to wait after a failure.
    ///
    /// - Parameters:
    ///   - failures: How many attempts failed in a row, this one included.
    ///   - retryAfter: What the server asks for; the delay is never shorter.
    ///   - fraction: A random number in 0 ..< 1.
    package func delay(afterFailures failures: Int, retryAfter: Duration?, fraction: Double) -> Duration {
        var bound = base
        for _ in 1..<max(failures, 1) where bound < maximumDelay {
            bound *= 2
        }
        let jittered = min(bound, maximumDelay) * fraction
        return max(jittered, min(retryAfter ?? .zero, Self.longestRetryAfter))
    }

    /// Whether the progress of an attempt is enough to begin a new row of failures: 1 MiB or 1 % of the file.
    package static func isProgress(confirmed: Int64, of size: Int64) -> Bool {
        confirmed > 0 && (confirmed >= 1 << 20 || confirmed >= (size + 99) / 100)
    }
}

/// What the engine does about a file whose attempt failed.
package enum FailureVerdict: Equatable {
    /// Repeat the attempt after the delay.
    case retry(after: Duration)
    /// The file begins anew at byte 0.
    case restart
    /// The account's next endpoint may be tried at once.
    case nextEndpoint
    /// The file is given up; the session's other files go on.
    case giveUpFile
    /// The session fails, whatever its options say.
    case failSession
    /// No session of the account starts until a person acts.
    case blockAccount

    /// What has happened to a file so far, as far as it matters.
    package struct History: Equatable, Sendable {
        /// Attempts that failed in a row, the last one included.
        package var failures = 0
        /// Protocol violations in a row, the last one included.
        package var violations = 0
        /// Whether the file was already started over without having moved on since.
        package var hasRestarted = false
        /// Whether a checkpoint holds bytes at the present endpoint.
        package var hasCheckpoint = false
        /// Whether the account has an endpoint that was not tried since the last success.
        package var hasNextEndpoint = false

        package init(
            failures: Int = 0, violations: Int = 0, hasRestarted: Bool = false, hasCheckpoint: Bool = false, hasNextEndpoint: Bool = false
        ) {
            self.failures = failures
            self.violations = violations
            self.hasRestarted = hasRestarted
            self.hasCheckpoint = hasCheckpoint
            self.hasNextEndpoint = hasNextEndpoint
        }
    }

    /// Decides by the error's class.
    package init(error: TransferError, history: History, policy: RetryPolicy, fraction: Double) {
        let again: FailureVerdict =
            history.failures >= policy.maximumAttempts
            ? .giveUpFile
            : .retry(after: policy.delay(afterFailures: history.failures, retryAfter: error.retryAfter, fraction: fraction))
        switch error.failureClass {
        case .unreachable:
            self = history.hasNextEndpoint && !history.hasCheckpoint ? .nextEndpoint : again
        case .credentials, .trust:
            self = .blockAccount
        case .resumeLost:
            self = history.hasRestarted ? .giveUpFile : .restart
        case .sourceChanged, .sourceLost, .permanent:
            self = .giveUpFile
        case .unsupported:
            self = history.hasNextEndpoint ? .nextEndpoint : .giveUpFile
        case .remoteFull:
            self = .failSession
        case .noSpace:
            // Nobody's fault but this machine's, and it may last: the file is never given up for it.
            self = .retry(after: policy.delay(afterFailures: history.failures, retryAfter: nil, fraction: fraction))
        case .protocolViolation:
            if history.violations <= 2 {
                self = again
            } else {
                self = history.hasNextEndpoint && !history.hasCheckpoint ? .nextEndpoint : again
            }
        default:
            self = again
        }
    }
}
