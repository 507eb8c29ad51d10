package import TransferCore

/// The queue's reaction to a failed attempt to transfer a file.
package enum RecoveryDecision: Equatable {
    case retry(after: Duration)
    /// Restart the file from byte 0.
    case restart
    /// Try the account's next endpoint immediately.
    case nextEndpoint
    /// Fail the file. Depending on ``SessionOptions/onItemFailure``, the session then continues with its other files, or also fails.
    case giveUpFile
    /// Fail the session, regardless of its options.
    case failSession
    /// Block the account: its sessions don't start until the app or the user acts.
    case blockAccount
    /// Make the session wait until this machine has the missing disk space, memory, threads or file descriptors.
    case waitForSpace

    /// The part of a file's history that affects the decision.
    package struct History: Equatable, Sendable {
        /// The number of consecutive failed attempts, including the last attempt. Some attempts, such as attempts that failed because of an
        /// outage, do not count; see ``FileHistory/failures``.
        package var failures = 0
        /// The number of consecutive attempts that failed because the current endpoint was unreachable or could not serve the file,
        /// including the last attempt.
        package var outageAttempts = 0
        /// Whether a failure that looks like an outage concerns only this file, not the current endpoint. Ignored for other failures.
        package var concernsOnlyThisFile = false
        /// Whether the last attempt moved more than 1 MiB. In an outage, the queue repeats such an attempt after a longer delay, to avoid
        /// moving the same bytes many times.
        package var isCostly = false
        /// Whether the current endpoint was unreachable for at least ``RetryPolicy/giveUpAfter``.
        package var isOutageTooLong = false
        /// The number of consecutive protocol violations, including the last violation.
        package var violations = 0
        /// Whether the file must not restart again: it has made no progress since a restart, or no new progress in several restarts.
        package var mustNotRestart = false
        /// The number of times that the transferred content had a wrong checksum, including the last time.
        package var mismatches = 0
        /// The number of restarts because the file's content changed.
        package var sourceChanges = 0
        /// Whether a checkpoint covers bytes at the current endpoint, or the endpoint may have kept unconfirmed bytes.
        package var hasCheckpoint = false
        /// Whether the current endpoint was unreachable for so long and so often that the file may restart at another endpoint.
        package var mayFallBack = false
        /// Whether the file may try another available endpoint before the next delay.
        package var hasNextEndpoint = false
        /// Whether another endpoint was tried without success since the last delay or progress, but may work later.
        package var othersMayWork = false
        /// Whether the current endpoint accepted the account's credentials in this process.
        package var isAuthenticated = false

        package init(
            failures: Int = 0, violations: Int = 0, mustNotRestart: Bool = false, mismatches: Int = 0, sourceChanges: Int = 0,
            hasCheckpoint: Bool = false,
            mayFallBack: Bool = false, hasNextEndpoint: Bool = false, othersMayWork: Bool = false, isAuthenticated: Bool = false,
            outageAttempts: Int = 0, isOutageTooLong: Bool = false, concernsOnlyThisFile: Bool = false, isCostly: Bool = false
        ) {
            self.concernsOnlyThisFile = concernsOnlyThisFile
            self.isCostly = isCostly
            self.failures = failures
            self.outageAttempts = outageAttempts
            self.isOutageTooLong = isOutageTooLong
            self.violations = violations
            self.mustNotRestart = mustNotRestart
            self.mismatches = mismatches
            self.sourceChanges = sourceChanges
            self.hasCheckpoint = hasCheckpoint
            self.mayFallBack = mayFallBack
            self.hasNextEndpoint = hasNextEndpoint
            self.othersMayWork = othersMayWork
            self.isAuthenticated = isAuthenticated
        }
    }

    /// The options of the session and its account that affect the decision.
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

    /// The number of consecutive protocol violations that are treated like other transient errors. After more violations, the endpoint counts
    /// as unreachable.
    private static let toleratedViolations = 2

    /// Whether an error means that no server at the endpoint can handle this file.
    package static func isUnreachable(_ error: TransferError, violations: Int) -> Bool {
        error.failureClass == .unreachable || error.failureClass == .protocolViolation && violations > toleratedViolations
    }

    /// Whether an error means that the server is down: the server can't be reached, closed a new connection without a response, or is
    /// unavailable according to its own response or a proxy's. Such an error concerns all files; see ``mayConcernOneFile(_:)`` for the
    /// exceptions.
    package static func isOutage(_ error: TransferError) -> Bool {
        error.failureClass == .unreachable && error.code != .notThisProtocol
            || error.failureClass == .transient && error.code == .serverUnavailable
    }

    /// Whether one file alone can cause this error, although the server serves other files.
    package static func mayConcernOneFile(_ error: TransferError) -> Bool {
        error.code == .serverUnavailable || error.code == .stalled
    }

    /// Whether an error means that the same attempt may succeed a little later. True for failure classes that this version does not know.
    package static func isTransient(_ error: TransferError) -> Bool {
        let otherClasses: [FailureClass] = [
            .unreachable, .credentials, .trust, .resumeLost, .sourceChanged, .sourceLost, .noSpace, .remoteFull, .unsupported, .permanent,
        ]
        return !otherClasses.contains(error.failureClass)
    }

    /// - Parameter fraction: A random number in 0 ..< 1.
    package init(error: TransferError, history: History, rules: Rules, fraction: Double) {
        let isOutage = Self.isOutage(error) && !history.concernsOnlyThisFile
        let isExhausted = !isOutage && history.failures >= rules.retry.maximumAttempts
        let retryOrGiveUp: RecoveryDecision
        if isExhausted {
            retryOrGiveUp = .giveUpFile
        } else if isOutage, history.isOutageTooLong {
            retryOrGiveUp = .failSession
        } else {
            retryOrGiveUp = .retry(
                after: rules.retry.delay(
                    afterFailures: isOutage ? history.outageAttempts : history.failures, retryAfter: error.retryAfter,
                    isOutage: isOutage && !history.isCostly, fraction: fraction))
        }
        if isOutage || Self.isUnreachable(error, violations: history.violations) {
            let mayLeave = !history.hasCheckpoint || history.mayFallBack || isExhausted || isOutage && history.isOutageTooLong
            self = history.hasNextEndpoint && mayLeave ? .nextEndpoint : retryOrGiveUp
            return
        }
        switch error.failureClass {
        case .credentials where error.code == .forbidden && history.isAuthenticated:
            // The credentials are right, so the server rejects only this file.
            self = .giveUpFile
        case .credentials:
            self = rules.fallsBackOnCredentials && history.hasNextEndpoint ? .nextEndpoint : .blockAccount
        case .trust:
            self = .blockAccount
        case .resumeLost:
            // After a second wrong checksum, the file fails even if bytes were transferred since the restart.
            self = history.mustNotRestart || history.mismatches > 1 ? .giveUpFile : .restart
        case .sourceChanged:
            // The restarts are limited, because a file that another program keeps writing can never be sent.
            self = rules.onSourceChange == .restart && history.sourceChanges < rules.retry.maximumAttempts ? .restart : .giveUpFile
        case .sourceLost, .permanent:
            self = .giveUpFile
        case .unsupported:
            self = history.hasNextEndpoint ? .nextEndpoint : history.othersMayWork ? retryOrGiveUp : .giveUpFile
        case .remoteFull:
            self = .failSession
        case .noSpace:
            self = .waitForSpace
        default:
            // Another server may accept a file that this server rejects.
            self = isExhausted && history.hasNextEndpoint ? .nextEndpoint : retryOrGiveUp
        }
    }
}

/// The text in the log.
extension RecoveryDecision: CustomStringConvertible {
    package var description: String {
        switch self {
        case .retry(let delay): "retry after \((delay.inSeconds * 10).rounded() / 10) s"
        case .restart: "restart"
        case .nextEndpoint: "nextEndpoint"
        case .giveUpFile: "giveUpFile"
        case .failSession: "failSession"
        case .blockAccount: "blockAccount"
        case .waitForSpace: "waitForSpace"
        }
    }
}
