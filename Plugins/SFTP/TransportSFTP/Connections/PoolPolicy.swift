import TransferCore

/// The rules for sharing connections to endpoints, and the time limits of these connections.
package struct PoolPolicy: Sendable {
    /// The number of files per connection at which the pool opens another connection. A connection is busy while at least 128 KiB of content
    /// is in flight. The pool treats a busy connection as if it had at least this many files.
    package var filesPerConnection = 2
    /// The maximum number of connections that the pool opens at the same time after the first one. OpenSSH's server by default allows 10
    /// unauthenticated connections from all clients together (`MaxStartups`, sshd_config(5)).
    package var maximumOpenings = 3
    /// The time after which the pool closes a connection without files.
    package var idleTime = Duration.seconds(60)
    /// The delay after a failed attempt to connect before the pool opens an additional connection. Does not apply to the first connection
    /// to an endpoint.
    package var delayAfterFailure = Duration.seconds(30)
    /// The time limit for opening a connection. The individual steps have shorter limits.
    package var connectTimeout = Duration.seconds(180)
    /// The time limit for the start of SFTP after the login. The account's shell may hang, which the SSH server does not detect. The limit
    /// is shorter than the queue's stall timeout (60 s), so the error reports this cause.
    package var startTimeout = Duration.seconds(50)
    /// If the server sends no bytes for this time although requests are unanswered, the connection gets no more files. Shorter than the
    /// queue's stall timeout (60 s), so the next attempt uses another connection.
    package var silence = Duration.seconds(45)
    /// Like ``silence``, but after the cancellation of an attempt on the connection.
    package var silenceAfterCancellation = Duration.seconds(5)
    /// The time without bytes from the server after which a connection sends a keepalive request. After three times this interval, the
    /// client considers the connection lost.
    package var keepaliveInterval = Duration.seconds(15)
    /// The interval at which tasks that wait for a connection report activity, so that the queue's stall timeout does not end their attempts.
    /// The steps of connecting have their own time limits. After one interval, a file that could use a busy connection stops waiting for a new one.
    package var activityInterval = Duration.seconds(5)
    package var now: @Sendable () -> ContinuousClock.Instant = { .now }
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// Creates the default policy.
    package init() {}

    /// Runs an operation, and cancels it after a time limit.
    ///
    /// - Parameters:
    ///   - late: The error to throw after the time limit.
    ///   - onLateResult: Called with a result that arrives after the time limit, or after the cancellation of the task.
    /// - Throws: `late`, the error of the operation, or `CancellationError`.
    func within<Result: Sendable>(
        _ limit: Duration, orThrow late: TransferError, onLateResult: @Sendable (Result) async -> Void = { _ in },
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
            if case .success(let result?)? = await group.nextResult() { await onLateResult(result) }
            throw failure
        }
    }
}
