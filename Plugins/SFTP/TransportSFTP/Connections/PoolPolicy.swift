import TransferCore

/// How connections to endpoints are shared, and their time limits.
package struct PoolPolicy: Sendable {
    /// The number of files on each connection before another one is opened.
    package var filesBeforeNext = 2
    /// The maximum number of connections that are opened in parallel after the first one. By default, OpenSSH's server allows 10
    /// unauthenticated connections from all clients together (`MaxStartups`, sshd_config(5)).
    package var openingsAtOnce = 3
    /// A connection is closed after this long without a file.
    package var idleTime = Duration.seconds(60)
    /// The time without further attempts to connect after a failed one.
    package var pause = Duration.seconds(30)
    /// The time limit for opening a connection. Its steps have shorter limits of their own; this one covers the rest.
    package var connectTime = Duration.seconds(180)
    /// The time limit for the start of SFTP after the login. The account's shell can hang, which the SSH server does not notice.
    /// Shorter than the queue's limit for stalled attempts (60 s), so that this is the reported reason.
    package var beginTime = Duration.seconds(50)
    /// The time without a response after which the connection gets no further files. Shorter than the queue's limit for stalled attempts
    /// (60 s), so that the next attempt gets another connection.
    package var silence = Duration.seconds(45)
    /// The time without a response after which the connection gets no further files once an attempt on it was cancelled.
    package var silenceAfterGivingUp = Duration.seconds(5)
    /// How often tasks that wait for a connection report activity. The steps of connecting have their own limits, so the queue's stall
    /// timeout, which would end several attempts of one connection, does not apply.
    package var activityInterval = Duration.seconds(5)
    /// The clock.
    package var now: @Sendable () -> ContinuousClock.Instant = { .now }
    /// Waits for a duration.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// Creates the default policy.
    package init() {}

    /// Runs an operation with a time limit, and cancels it after that.
    ///
    /// - Parameters:
    ///   - late: Thrown after the time limit.
    ///   - discard: Called with a result that came too late.
    func within<Result: Sendable>(
        _ limit: Duration, orThrow late: TransferError, discard: @Sendable (Result) async -> Void = { _ in },
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await body() }
            group.addTask { [sleep] in
                try await sleep(limit)
                return nil
            }
            let failure: any Error
            do {
                if let result = try await group.next(), let result {
                    group.cancelAll()
                    return result
                }
                failure = late
            } catch {
                failure = error
            }
            group.cancelAll()
            if case .success(let result?)? = await group.nextResult() { await discard(result) }
            throw failure
        }
    }
}
