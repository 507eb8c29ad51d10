import Locking
package import TransferCore

/// Enforces the rate limits of the whole queue: of each session, of each account and of the queue, in bytes per second.
///
/// Transports ask it from any thread before they move bytes, and are never blocked: an answer of 0 bytes says when to ask again. What was
/// allowed counts as moved. Over any ten seconds, no limit is exceeded by more than 5 %, nor missed by more where there is enough to move.
///
/// Sessions that compete for a limit get equal parts of it; what one can't use goes to the others. The files of a session take turns.
package final class Pacer: Sendable {
    private let clock: EngineClock
    private let limits = Locked(RateLimits())

    package init(clock: EngineClock) {
        self.clock = clock
    }

    /// Limits all sessions together; nil lifts the limit, 0 lets nothing move. In force at once, for waiting transports within half a second.
    package func setQueueRate(_ bytesPerSecond: Int64?) {
        set(bytesPerSecond, for: .queue)
    }

    /// Limits all sessions of an account together, as ``setQueueRate(_:)`` does.
    package func setRate(_ bytesPerSecond: Int64?, account: AccountKey) {
        set(bytesPerSecond, for: .account(account))
    }

    /// Limits all files of a session together, as ``setQueueRate(_:)`` does.
    package func setRate(_ bytesPerSecond: Int64?, session: SessionKey) {
        set(bytesPerSecond, for: .session(session))
    }

    /// How many limits are in force.
    package var limitCount: Int { limits.withLock { $0.buckets.count } }

    /// Drops a session that ended, and its limit. Its part of the shared limits is the others' at once.
    package func forget(session: SessionKey) {
        set(nil, for: .session(session))
        limits.withLock { $0.dismiss(session) }
    }

    /// Drops an account that was deleted, and its limit.
    package func forget(account: AccountKey) {
        set(nil, for: .account(account))
    }

    /// How many of the next `limit` bytes a file of the session may move now. Takes them from all limits that apply, or from none.
    package func allowance(upTo limit: Int, session: SessionKey, account: AccountKey) -> Allowance {
        guard limit > 0 else { return Allowance(bytes: 0) }
        guard limits.withLock({ $0.apply(to: session, of: account) }) else { return Allowance(bytes: limit) }
        let now = clock.now().inSeconds
        return limits.withLock { $0.allowance(upTo: limit, session: session, account: account, at: now) }
    }

    private func set(_ bytesPerSecond: Int64?, for scope: RateLimits.Scope) {
        let now = clock.now().inSeconds
        limits.withLock { $0.set(bytesPerSecond.map { Double(max(0, $0)) }, for: scope, at: now) }
    }
}
