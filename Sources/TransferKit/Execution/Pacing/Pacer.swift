import Locking
package import TransferCore

/// Enforces the rate limits of each session, of each account and of the queue, in bytes per second.
///
/// Transports request an allowance before they transfer bytes, from any thread and without blocking. An allowance of 0 bytes contains the
/// time to wait before the next request. Allowed bytes count as transferred. Over any ten seconds, the transferred bytes exceed no limit by
/// more than 5 %. If enough bytes are ready for transfer, the transferred bytes fall short of the limit by at most 5 %.
///
/// Sessions that compete for a limit get equal shares of it. Unused shares go to the other sessions. The files of a session take turns.
package final class Pacer: Sendable {
    private let clock: EngineClock
    private let limits = Locked(RateLimits())

    package init(clock: EngineClock) {
        self.clock = clock
    }

    /// Limits all sessions together; nil removes the limit; 0 allows no bytes. The limit takes effect immediately. A transport that is waiting before
    /// its next request notices a raised limit within half a second.
    package func setQueueRate(_ bytesPerSecond: Int64?) {
        set(bytesPerSecond, for: .queue)
    }

    /// Limits all sessions of an account together; see ``setQueueRate(_:)``.
    package func setRate(_ bytesPerSecond: Int64?, account: AccountKey) {
        set(bytesPerSecond, for: .account(account))
    }

    /// Limits all files of a session together; see ``setQueueRate(_:)``.
    package func setRate(_ bytesPerSecond: Int64?, session: SessionKey) {
        set(bytesPerSecond, for: .session(session))
    }

    /// The number of active limits.
    package var limitCount: Int { limits.withLock { $0.buckets.count } }

    /// Removes an ended session and its limit. Its share of other limits goes to other sessions immediately.
    package func forget(session: SessionKey) {
        set(nil, for: .session(session))
        limits.withLock { $0.dismiss(session) }
    }

    /// Removes a deleted account and its limit.
    package func forget(account: AccountKey) {
        set(nil, for: .account(account))
    }

    /// Returns the number of bytes, up to `limit`, that a file of the session may transfer now. Counts them against all applicable limits.
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
