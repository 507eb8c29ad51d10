import Testing
import TransferCore
import TransferKit

@Suite struct FailureVerdictTests {
    typealias History = FailureVerdict.History

    private func verdict(
        _ failureClass: FailureClass, _ history: History = History(failures: 1), _ rules: FailureVerdict.Rules = .init(),
        code: TransferError.Code = .internalFailure
    ) -> FailureVerdict {
        FailureVerdict(error: TransferError(failureClass, code, "It failed."), history: history, rules: rules, fraction: 0.5)
    }

    private let soon = FailureVerdict.retry(after: .milliseconds(500))

    @Test func transientIsRepeatedUntilTheAttemptsAreUsedUp() {
        #expect(verdict(.transient) == soon)
        #expect(verdict(.transient, History(failures: 7)) == .retry(after: .seconds(32)))
        #expect(verdict(.transient, History(failures: 8)) == .giveUpFile)
    }

    /// An attempt costs nothing where no server is; a large body that a proxy takes for a stopped server is another matter.
    @Test(arguments: [(false, Duration.seconds(5)), (true, .seconds(64))]) func anOutageIsProbedSoonUnlessThatCostsMuch(
        isCostly: Bool, delay: Duration
    ) {
        let history = History(outageAttempts: 8, isCostly: isCostly)
        #expect(verdict(.transient, history, code: .serverUnavailable) == .retry(after: delay))
    }

    @Test func anUnknownClassIsTransient() {
        #expect(verdict(FailureClass(rawValue: "of another version")) == soon)
    }

    @Test(arguments: [
        (History(failures: 1), false), (History(failures: 1, hasNextEndpoint: true), true),
        (History(failures: 1, hasCheckpoint: true, hasNextEndpoint: true), false),
        (History(failures: 1, hasCheckpoint: true, mayFallBack: true, hasNextEndpoint: true), true),
        (History(failures: 1, hasCheckpoint: true, mayFallBack: true), false),
        // Rather than to be given up, the file begins anew elsewhere.
        (History(failures: 1, hasCheckpoint: true, hasNextEndpoint: true, isOutageTooLong: true), true),
    ])
    func unreachableGoesToTheNextEndpoint(_ history: History, _ goes: Bool) {
        var history = history
        history.outageAttempts = 1
        #expect(verdict(.unreachable, history) == (goes ? .nextEndpoint : soon))
    }

    @Test func anOutageUsesUpNoAttempts() {
        #expect(verdict(.unreachable, History(failures: 8, outageAttempts: 1_000)) == .retry(after: .seconds(5)))
        #expect(verdict(.unreachable, History(outageAttempts: 2, isOutageTooLong: true)) == .failSession)
        #expect(verdict(.unreachable, History(failures: 8), code: .notThisProtocol) == .giveUpFile)
    }

    @Test func aFileThatUsedUpItsAttemptsIsTriedElsewhere() {
        #expect(verdict(.transient, History(failures: 8, hasNextEndpoint: true)) == .nextEndpoint)
        #expect(verdict(.transient, History(failures: 7, hasNextEndpoint: true)) == .retry(after: .seconds(32)))
    }

    @Test func credentialsAndTrustNeedAPerson() {
        #expect(verdict(.credentials) == .blockAccount)
        #expect(verdict(.credentials, History(failures: 1, hasNextEndpoint: true)) == .blockAccount)
        #expect(verdict(.trust, History(failures: 1, hasNextEndpoint: true, isProven: true)) == .blockAccount)
    }

    @Test func credentialsMayBeTriedElsewhereIfTheAccountSaysSo() {
        let rules = FailureVerdict.Rules(fallsBackOnCredentials: true)
        #expect(verdict(.credentials, History(failures: 1, hasNextEndpoint: true), rules) == .nextEndpoint)
        #expect(verdict(.credentials, History(failures: 1), rules) == .blockAccount)
        #expect(verdict(.trust, History(failures: 1, hasNextEndpoint: true), rules) == .blockAccount)
    }

    @Test func whatIsForbiddenToCredentialsThatAreRightConcernsTheFileAlone() {
        #expect(verdict(.credentials, History(failures: 1, isProven: true), code: .forbidden) == .giveUpFile)
        #expect(verdict(.credentials, History(failures: 1), code: .forbidden) == .blockAccount)
        // As a token that ran out: it worked before, and nothing works with it any more.
        #expect(verdict(.credentials, History(failures: 1, isProven: true), code: .credentialsRejected) == .blockAccount)
    }

    @Test func resumeLostStartsOverOnce() {
        #expect(verdict(.resumeLost) == .restart)
        #expect(verdict(.resumeLost, History(failures: 2, hasRestarted: true)) == .giveUpFile)
        #expect(verdict(.resumeLost, History(failures: 1, mismatches: 1)) == .restart)
        #expect(verdict(.resumeLost, History(failures: 1, mismatches: 2)) == .giveUpFile)
    }

    @Test func aChangedSourceFailsOrStartsOver() {
        let restarts = FailureVerdict.Rules(retry: RetryPolicy(maximumAttempts: 3), onSourceChange: .restart)
        #expect(verdict(.sourceChanged) == .giveUpFile)
        #expect(verdict(.sourceChanged, History(failures: 9, sourceChanges: 2), restarts) == .restart)
        #expect(verdict(.sourceChanged, History(failures: 1, sourceChanges: 3), restarts) == .giveUpFile)
    }

    @Test(arguments: [FailureClass.permanent, .sourceLost, .unsupported])
    func noUseInTryingAgain(_ failureClass: FailureClass) {
        #expect(verdict(failureClass) == .giveUpFile)
    }

    @Test func unsupportedMayWorkElsewhere() {
        #expect(verdict(.unsupported, History(failures: 1, hasNextEndpoint: true)) == .nextEndpoint)
        #expect(verdict(.unsupported, History(failures: 1, othersMayWork: true)) == soon)
    }

    @Test func aFullMachineIsWaitedFor() {
        #expect(verdict(.noSpace, History(failures: 1_000)) == .waitForSpace)
    }

    @Test func aFullServerEndsTheSession() {
        #expect(verdict(.remoteFull) == .failSession)
    }

    @Test func protocolViolationsAreTriedTwiceThenElsewhere() {
        #expect(verdict(.protocolViolation, History(failures: 1, violations: 2, hasNextEndpoint: true)) == soon)
        #expect(verdict(.protocolViolation, History(failures: 3, violations: 3, hasNextEndpoint: true)) == .nextEndpoint)
        #expect(
            verdict(.protocolViolation, History(failures: 1, violations: 3, hasCheckpoint: true, hasNextEndpoint: true)) == soon,
            "as an endpoint that can't be reached: what it has counts")
    }
}
