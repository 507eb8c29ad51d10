import TransferCore

/// How the connections to endpoints are shared, and how long one may take for what.
package struct PoolPolicy: Sendable {
    /// How many files each connection has before there is another one.
    package var filesBeforeNext = 2
    /// How many connections are made at once where there is one already; OpenSSH's server lets in 10 at once by default (`MaxStartups`,
    /// sshd_config(5)), for all that connect to it.
    package var openingsAtOnce = 3
    /// After how long without a file a connection is closed.
    package var idleTime = Duration.seconds(60)
    /// How long no further connection is tried after one was refused.
    package var pause = Duration.seconds(30)
    /// How long a connection may take to be made. Its steps have shorter limits of their own; this one is for what has none.
    package var connectTime = Duration.seconds(180)
    /// How long a server may take to begin the conversation once the account is let in: the account's shell may hang, which the SSH server does not
    /// notice. Shorter than the time after which the queue ends an attempt that does not move (60 s), so that this is what is told.
    package var beginTime = Duration.seconds(50)
    /// For how long a server may answer nothing at all before nobody else is sent there over the same connection. Shorter than the time after which
    /// the queue ends an attempt that does not move (60 s), so that the next attempt gets another connection.
    package var silence = Duration.seconds(45)
    /// For how long a server may answer nothing before the connection takes no later attempt, once an attempt on it was given up.
    package var hush = Duration.seconds(5)
    /// How often those who wait for a connection report that they do. Its steps have time limits of their own, so the queue's stall timeout, which
    /// would end several attempts over one connection, does not apply.
    package var wordInterval = Duration.seconds(5)
    /// Tells the time.
    package var now: @Sendable () -> ContinuousClock.Instant = { .now }
    /// Waits.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// Makes the default.
    package init() {}

    /// Does something that has to be done in time; what takes longer is cancelled.
    ///
    /// - Parameters:
    ///   - late: Thrown if it was not done in time.
    ///   - discard: Gets a result that came too late.
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
