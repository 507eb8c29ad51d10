import Testing
import TransferCore
import TransferKit

@Suite struct RetryPolicyTests {
    private let policy = RetryPolicy(base: .seconds(1), maximumDelay: .seconds(300), maximumAttempts: 8)

    @Test(arguments: [(1, 1), (2, 2), (3, 4), (8, 128), (9, 256), (10, 300), (1_000, 300)])
    func boundsDoubleUpToTheMaximum(_ failures: Int, _ seconds: Int) {
        #expect(policy.delay(afterFailures: failures, retryAfter: nil, fraction: 1) == .seconds(seconds))
        #expect(policy.delay(afterFailures: failures, retryAfter: nil, fraction: 0) == .zero)
    }

    @Test func noServerCanStopAClientForEver() {
        #expect(policy.delay(afterFailures: 1, retryAfter: .seconds(4_294_967_295), fraction: 0) == .seconds(86_400))
    }

    @Test func theServersWordIsALowerBound() {
        #expect(policy.delay(afterFailures: 1, retryAfter: .seconds(30), fraction: 0.5) == .seconds(30))
        #expect(policy.delay(afterFailures: 9, retryAfter: .seconds(30), fraction: 0.5) == .seconds(128))
    }

    @Test(arguments: [
        (Int64(0), Int64(0), false), (0, 100, false), (1, 100, true), (1, 101, false), (1 << 20, 1 << 40, true), (1 << 19, 1 << 40, false),
    ])
    func progress(_ confirmed: Int64, _ size: Int64, _ expected: Bool) {
        #expect(RetryPolicy.isProgress(confirmed: confirmed, of: size) == expected)
    }
}

@Suite struct FailureVerdictTests {
    private func verdict(_ failureClass: FailureClass, _ history: FailureVerdict.History = .init(failures: 1)) -> FailureVerdict {
        FailureVerdict(
            error: TransferError(failureClass, .internalFailure, "It failed."), history: history, policy: RetryPolicy(), fraction: 0.5)
    }

    @Test func transientIsRepeatedUntilTheAttemptsAreUsedUp() {
        #expect(verdict(.transient) == .retry(after: .milliseconds(500)))
        #expect(verdict(.transient, .init(failures: 7)) == .retry(after: .seconds(32)))
        #expect(verdict(.transient, .init(failures: 8)) == .giveUpFile)
    }

    @Test func anUnknownClassIsTransient() {
        #expect(verdict(FailureClass(rawValue: "of another version")) == .retry(after: .milliseconds(500)))
    }

    @Test func unreachableGoesToTheNextEndpointUnlessBytesAreThere() {
        #expect(verdict(.unreachable) == .retry(after: .milliseconds(500)))
        #expect(verdict(.unreachable, .init(failures: 1, hasNextEndpoint: true)) == .nextEndpoint)
        #expect(verdict(.unreachable, .init(failures: 1, hasCheckpoint: true, hasNextEndpoint: true)) == .retry(after: .milliseconds(500)))
    }

    @Test func credentialsAndTrustNeedAPerson() {
        #expect(verdict(.credentials) == .blockAccount)
        #expect(verdict(.trust) == .blockAccount)
    }

    @Test func resumeLostStartsOverOnce() {
        #expect(verdict(.resumeLost) == .restart)
        #expect(verdict(.resumeLost, .init(failures: 2, hasRestarted: true)) == .giveUpFile)
    }

    @Test(arguments: [FailureClass.permanent, .sourceChanged, .sourceLost, .unsupported])
    func noUseInTryingAgain(_ failureClass: FailureClass) {
        #expect(verdict(failureClass) == .giveUpFile)
    }

    @Test func unsupportedMayWorkElsewhere() {
        #expect(verdict(.unsupported, .init(failures: 1, hasNextEndpoint: true)) == .nextEndpoint)
    }

    @Test func aFullMachineIsWaitedFor() {
        #expect(verdict(.noSpace, .init(failures: 1_000)) == .retry(after: .seconds(150)))
    }

    @Test func aFullServerEndsTheSession() {
        #expect(verdict(.remoteFull) == .failSession)
    }

    @Test func protocolViolationsAreTriedTwiceThenElsewhere() {
        let elsewhere = FailureVerdict.History(failures: 1, violations: 2, hasNextEndpoint: true)
        #expect(verdict(.protocolViolation, elsewhere) == .retry(after: .milliseconds(500)))
        #expect(verdict(.protocolViolation, .init(failures: 3, violations: 3, hasNextEndpoint: true)) == .nextEndpoint)
    }
}
