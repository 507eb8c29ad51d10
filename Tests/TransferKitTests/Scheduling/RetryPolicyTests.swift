import Testing
import TransferCore
import TransferKit

@Suite struct RetryPolicyTests {
    private let policy = RetryPolicy(base: .seconds(1), maximumDelay: .seconds(300), maximumAttempts: 8)

    @Test(arguments: [(1, 1), (2, 2), (3, 4), (8, 128), (9, 256), (10, 300), (1_000, 300)])
    func delayBoundsDoubleUpToMaximum(_ failures: Int, _ seconds: Int) {
        #expect(policy.delay(afterFailures: failures, retryAfter: nil, fraction: 1) == .seconds(seconds))
        #expect(policy.delay(afterFailures: failures, retryAfter: nil, fraction: 0) == .zero)
    }

    @Test func limitsRetryAfter() {
        #expect(policy.delay(afterFailures: 1, retryAfter: .seconds(4_294_967_295), fraction: 0) == .seconds(86_400))
    }

    @Test func retryAfterIsLowerBound() {
        #expect(policy.delay(afterFailures: 1, retryAfter: .seconds(30), fraction: 0.5) == .seconds(30))
        #expect(policy.delay(afterFailures: 9, retryAfter: .seconds(30), fraction: 0.5) == .seconds(128))
    }

    private static let progresses: [(Int64, Int64?, Bool)] = [
        (0, 0, false), (0, 100, false), (1, 100, true), (1, 101, false), (1 << 20, 1 << 40, true), (1 << 19, 1 << 40, false),
        (1_048_575, .max, false), (1_048_576, nil, true), (1_048_575, nil, false), (0, nil, false),
    ]

    @Test(arguments: progresses)
    func progressNeedsEnoughConfirmedBytes(_ confirmed: Int64, _ size: Int64?, _ expected: Bool) {
        #expect(RetryPolicy.isProgress(confirmed: confirmed, of: size) == expected)
    }
}
