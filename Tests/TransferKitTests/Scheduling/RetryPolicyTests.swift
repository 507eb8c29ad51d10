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

    private static let extremes = [Duration.seconds(1), Duration.largest, Duration.zero - Duration.largest]

    /// The queue does not validate stored policies.
    @Test(arguments: extremes, extremes) func limitsDelaysOfStoredPolicy(_ base: Duration, _ maximumDelay: Duration) {
        let policy = RetryPolicy(base: base, maximumDelay: maximumDelay)
        for failures in [1, 2, 1_000] {
            for isOutage in [false, true] {
                let delay = policy.delay(afterFailures: failures, retryAfter: .largest, isOutage: isOutage, fraction: 1)
                // One year at most, apart from rounding.
                #expect(delay >= .seconds(86_400) && delay <= .seconds(367 * 86_400))
            }
        }
    }

    private static let progressCases: [(Int64, Int64?, Bool)] = [
        (0, 0, false), (0, 100, false), (1, 100, true), (1, 101, false), (1 << 16, 1 << 40, true), (1 << 15, 1 << 40, false),
        (65_535, .max, false), (65_536, nil, true), (65_535, nil, false), (0, nil, false),
    ]

    @Test(arguments: progressCases)
    func progressNeedsEnoughConfirmedBytes(_ confirmed: Int64, _ size: Int64?, _ expected: Bool) {
        #expect(RetryPolicy.isProgress(confirmed: confirmed, of: size) == expected)
    }
}
