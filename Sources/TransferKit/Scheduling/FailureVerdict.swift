package import TransferCore

/// What the engine does about a file whose attempt failed.
package enum FailureVerdict: Equatable {
    /// Repeat the attempt after the delay.
    case retry(after: Duration)
    /// The file begins anew at byte 0.
    case restart
    /// The account's next endpoint is tried at once.
    case nextEndpoint
    /// The file is given up; the session's other files go on.
    case giveUpFile
    /// The session fails, whatever its options say.
    case failSession
    /// No session of the account starts until a person acts.
    case blockAccount
    /// The session waits until this machine has space or descriptors again.
    case waitForSpace

    /// What has happened to a file so far, as far as it matters.
    package struct History: Equatable, Sendable {
        /// Attempts that failed in a row, the last one included. Those that reached no server are not counted.
        package var failures = 0
        /// Attempts in a row that did not reach the present endpoint, the last one included.
        package var outageAttempts = 0
        /// Whether a failure that looks like an outage is the file's own, as the present endpoint serves others.
        package var isOfFile = false
        /// Whether the present endpoint could not be reached for as long as the session waits for it.
        package var isOutageTooLong = false
        /// Protocol violations in a row, the last one included.
        package var violations = 0
        /// Whether the file was already started over without having moved on since.
        package var hasRestarted = false
        /// How often what had moved turned out to have another checksum, the last time included.
        package var mismatches = 0
        /// How often the file was started over because its content changed.
        package var sourceChanges = 0
        /// Whether a checkpoint vouches for bytes at the present endpoint.
        package var hasCheckpoint = false
        /// Whether the present endpoint could not be reached for so long and so often that the bytes there count no more.
        package var mayFallBack = false
        /// Whether the account has an endpoint that may be asked and was not tried since the last delay.
        package var hasNextEndpoint = false
        /// Whether another endpoint was tried since the last delay and may work later.
        package var othersMayWork = false
        /// Whether the present endpoint accepted the account's credentials in this process.
        package var isProven = false

        package init(
            failures: Int = 0, violations: Int = 0, hasRestarted: Bool = false, mismatches: Int = 0, sourceChanges: Int = 0,
            hasCheckpoint: Bool = false,
            mayFallBack: Bool = false, hasNextEndpoint: Bool = false, othersMayWork: Bool = false, isProven: Bool = false,
            outageAttempts: Int = 0, isOutageTooLong: Bool = false, isOfFile: Bool = false
        ) {
            self.isOfFile = isOfFile
            self.failures = failures
            self.outageAttempts = outageAttempts
            self.isOutageTooLong = isOutageTooLong
            self.violations = violations
            self.hasRestarted = hasRestarted
            self.mismatches = mismatches
            self.sourceChanges = sourceChanges
            self.hasCheckpoint = hasCheckpoint
            self.mayFallBack = mayFallBack
            self.hasNextEndpoint = hasNextEndpoint
            self.othersMayWork = othersMayWork
            self.isProven = isProven
        }
    }

    /// What the session and its account want.
    package struct Rules: Equatable, Sendable {
        package var retry: RetryPolicy
        package var onSourceChange: SessionOptions.SourceChangePolicy
        package var fallsBackOnCredentials: Bool

        package init(
            retry: RetryPolicy = RetryPolicy(), onSourceChange: SessionOptions.SourceChangePolicy = .fail,
            fallsBackOnCredentials: Bool = false
        ) {
            self.retry = retry
            self.onSourceChange = onSourceChange
            self.fallsBackOnCredentials = fallsBackOnCredentials
        }
    }

    /// How many answers in a row that make no sense are taken for an accident.
    private static let toleratedViolations = 2

    /// Whether an error says that what answers there, if anything, is not a server that this file can be sent to.
    package static func isUnreachable(_ error: TransferError, violations: Int) -> Bool {
        error.failureClass == .unreachable || error.failureClass == .protocolViolation && violations > toleratedViolations
    }

    /// Whether an error says that no server is there: no connection reached one, none answered, or a proxy answered for it. Which file is sent
    /// does not matter then; see ``mayConcernOneFile(_:)`` for the exceptions.
    package static func isOutage(_ error: TransferError) -> Bool {
        error.failureClass == .unreachable && error.code != .notThisProtocol
            || error.failureClass == .transient && error.code == .serverUnavailable
    }

    /// Whether a server that serves other files may give this error for one file.
    package static func mayConcernOneFile(_ error: TransferError) -> Bool {
        error.code == .serverUnavailable || error.code == .stalled
    }

    /// Whether an error says that the same attempt may work a little later; so do classes of other versions.
    package static func isTransient(_ error: TransferError) -> Bool {
        let others: [FailureClass] = [
            .unreachable, .credentials, .trust, .resumeLost, .sourceChanged, .sourceLost, .noSpace, .remoteFull, .unsupported, .permanent,
        ]
        return !others.contains(error.failureClass)
    }

    /// Decides by the error's class.
    ///
    /// - Parameter fraction: A random number in 0 ..< 1.
    package init(error: TransferError, history: History, rules: Rules, fraction: Double) {
        let isOutage = Self.isOutage(error) && !history.isOfFile
        let isExhausted = !isOutage && history.failures >= rules.retry.maximumAttempts
        let again: FailureVerdict
        if isExhausted {
            again = .giveUpFile
        } else if isOutage, history.isOutageTooLong {
            again = .failSession
        } else {
            again = .retry(
                after: rules.retry.delay(
                    afterFailures: isOutage ? history.outageAttempts : history.failures, retryAfter: error.retryAfter, isOutage: isOutage,
                    fraction: fraction))
        }
        if isOutage || Self.isUnreachable(error, violations: history.violations) {
            let mayLeave = !history.hasCheckpoint || history.mayFallBack || isExhausted || isOutage && history.isOutageTooLong
            self = history.hasNextEndpoint && mayLeave ? .nextEndpoint : again
            return
        }
        switch error.failureClass {
        case .credentials where error.code == .forbidden && history.isProven:
            // The credentials are right, so it is this file that is not wanted.
            self = .giveUpFile
        case .credentials:
            self = rules.fallsBackOnCredentials && history.hasNextEndpoint ? .nextEndpoint : .blockAccount
        case .trust:
            self = .blockAccount
        case .resumeLost:
            // All that moved in between is no progress if it was wrong once more.
            self = history.hasRestarted || history.mismatches > 1 ? .giveUpFile : .restart
        case .sourceChanged:
            // A file that is being written all the time can't be sent.
            self = rules.onSourceChange == .restart && history.sourceChanges < rules.retry.maximumAttempts ? .restart : .giveUpFile
        case .sourceLost, .permanent:
            self = .giveUpFile
        case .unsupported:
            self = history.hasNextEndpoint ? .nextEndpoint : history.othersMayWork ? again : .giveUpFile
        case .remoteFull:
            self = .failSession
        case .noSpace:
            self = .waitForSpace
        default:
            // Another server may take what this one does not.
            self = isExhausted && history.hasNextEndpoint ? .nextEndpoint : again
        }
    }
}
