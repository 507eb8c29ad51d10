import Testing
import TransferCore
import TransferKit

@Suite struct RecoveryDecisionTests {
    typealias History = RecoveryDecision.History

    private func decision(
        _ failureClass: FailureClass, _ history: History = History(failures: 1), _ rules: RecoveryDecision.Rules = .init(),
        code: TransferError.Code = .internalFailure
    ) -> RecoveryDecision {
        RecoveryDecision(error: TransferError(failureClass, code, "It failed."), history: history, rules: rules, fraction: 0.5)
    }

    private let soon = RecoveryDecision.retry(after: .milliseconds(500))

    @Test func retriesTransientFailureUntilAttemptsAreUsedUp() {
        #expect(decision(.transient) == soon)
        #expect(decision(.transient, History(failures: 7)) == .retry(after: .seconds(32)))
        #expect(decision(.transient, History(failures: 8)) == .giveUpFile)
    }

    /// An attempt is costly, for example, if a proxy accepts a large body although the server behind the proxy is stopped.
    @Test(arguments: [(false, Duration.seconds(5)), (true, .seconds(64))]) func retriesSoonInOutageUnlessAttemptsAreCostly(
        isCostly: Bool, delay: Duration
    ) {
        let history = History(outageAttempts: 8, isCostly: isCostly)
        #expect(decision(.transient, history, code: .serverUnavailable) == .retry(after: delay))
    }

    @Test func treatsUnknownClassAsTransient() {
        #expect(decision(FailureClass(rawValue: "of another version")) == soon)
    }

    @Test(arguments: [
        (History(failures: 1), false), (History(failures: 1, hasNextEndpoint: true), true),
        (History(failures: 1, hasCheckpoint: true, hasNextEndpoint: true), false),
        (History(failures: 1, hasCheckpoint: true, mayFallBack: true, hasNextEndpoint: true), true),
        (History(failures: 1, hasCheckpoint: true, mayFallBack: true), false),
        // The file restarts at another endpoint instead of failing.
        (History(failures: 1, hasCheckpoint: true, hasNextEndpoint: true, isOutageTooLong: true), true),
    ])
    func movesToNextEndpointIfUnreachable(_ history: History, _ moves: Bool) {
        var history = history
        history.outageAttempts = 1
        #expect(decision(.unreachable, history) == (moves ? .nextEndpoint : soon))
    }

    @Test func outageUsesNoAttempts() {
        #expect(decision(.unreachable, History(failures: 8, outageAttempts: 1_000)) == .retry(after: .seconds(5)))
        #expect(decision(.unreachable, History(outageAttempts: 2, isOutageTooLong: true)) == .failSession)
        #expect(decision(.unreachable, History(failures: 8), code: .notThisProtocol) == .giveUpFile)
    }

    @Test func fileWithoutRemainingAttemptsMovesToNextEndpoint() {
        #expect(decision(.transient, History(failures: 8, hasNextEndpoint: true)) == .nextEndpoint)
        #expect(decision(.transient, History(failures: 7, hasNextEndpoint: true)) == .retry(after: .seconds(32)))
    }

    @Test func credentialsAndTrustBlockAccount() {
        #expect(decision(.credentials) == .blockAccount)
        #expect(decision(.credentials, History(failures: 1, hasNextEndpoint: true)) == .blockAccount)
        #expect(decision(.trust, History(failures: 1, hasNextEndpoint: true, isAuthenticated: true)) == .blockAccount)
    }

    @Test func triesNextEndpointAfterRejectedCredentialsIfAccountAllows() {
        let rules = RecoveryDecision.Rules(fallsBackOnCredentials: true)
        #expect(decision(.credentials, History(failures: 1, hasNextEndpoint: true), rules) == .nextEndpoint)
        #expect(decision(.credentials, History(failures: 1), rules) == .blockAccount)
        #expect(decision(.trust, History(failures: 1, hasNextEndpoint: true), rules) == .blockAccount)
    }

    @Test func forbiddenWithValidCredentialsFailsOnlyFile() {
        #expect(decision(.credentials, History(failures: 1, isAuthenticated: true), code: .forbidden) == .giveUpFile)
        #expect(decision(.credentials, History(failures: 1), code: .forbidden) == .blockAccount)
        // For example, the token worked before, but has expired.
        #expect(decision(.credentials, History(failures: 1, isAuthenticated: true), code: .credentialsRejected) == .blockAccount)
    }

    @Test func lostUploadRestartsUntilLimit() {
        #expect(decision(.resumeLost) == .restart)
        #expect(decision(.resumeLost, History(failures: 2, mustNotRestart: true)) == .giveUpFile)
        #expect(decision(.resumeLost, History(failures: 1, mismatches: 1)) == .restart)
        #expect(decision(.resumeLost, History(failures: 1, mismatches: 2)) == .giveUpFile)
    }

    @Test func changedSourceFailsOrRestarts() {
        let restarts = RecoveryDecision.Rules(retry: RetryPolicy(maximumAttempts: 3), onSourceChange: .restart)
        #expect(decision(.sourceChanged) == .giveUpFile)
        #expect(decision(.sourceChanged, History(failures: 9, sourceChanges: 2), restarts) == .restart)
        #expect(decision(.sourceChanged, History(failures: 1, sourceChanges: 3), restarts) == .giveUpFile)
    }

    @Test(arguments: [FailureClass.permanent, .sourceLost, .unsupported])
    func permanentFailuresAreNotRetried(_ failureClass: FailureClass) {
        #expect(decision(failureClass) == .giveUpFile)
    }

    @Test func movesToNextEndpointIfUnsupported() {
        #expect(decision(.unsupported, History(failures: 1, hasNextEndpoint: true)) == .nextEndpoint)
        #expect(decision(.unsupported, History(failures: 1, othersMayWork: true)) == soon)
    }

    @Test func waitsWhileLocalDiskIsFull() {
        #expect(decision(.noSpace, History(failures: 1_000)) == .waitForSpace)
    }

    @Test func fullServerEndsSession() {
        #expect(decision(.remoteFull) == .failSession)
    }

    @Test func movesToNextEndpointAfterThreeProtocolViolations() {
        #expect(decision(.protocolViolation, History(failures: 1, violations: 2, hasNextEndpoint: true)) == soon)
        #expect(decision(.protocolViolation, History(failures: 3, violations: 3, hasNextEndpoint: true)) == .nextEndpoint)
        #expect(
            decision(.protocolViolation, History(failures: 1, violations: 3, hasCheckpoint: true, hasNextEndpoint: true)) == soon,
            "a file with a checkpoint stays at its endpoint, as it does when the endpoint is unreachable")
    }
}
