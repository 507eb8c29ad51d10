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
    private let state = Locked(State())

    private struct State: Sendable {
        var limits = RateLimits()
        var schedule = RateSchedule()
    }

    package init(clock: EngineClock) {
        self.clock = clock
    }

    /// Limits all sessions together; nil removes the limit; 0 allows no bytes. The limit takes effect immediately. A transport that is waiting before
    /// its next request notices a raised limit within half a second.
    ///
    /// - Parameter timetable: The limits that replace this limit at some times of the week, in local time. Each such change of the limit
    ///   takes effect like a call of this method.
    package func setQueueRate(_ bytesPerSecond: Int64?, timetable: BandwidthTimetable? = nil) {
        set(bytesPerSecond, timetable, for: .queue)
    }

    /// Limits all sessions of an account together; see ``setQueueRate(_:timetable:)``.
    package func setRate(_ bytesPerSecond: Int64?, timetable: BandwidthTimetable? = nil, account: AccountKey) {
        set(bytesPerSecond, timetable, for: .account(account))
    }

    /// Limits all files of a session together; see ``setQueueRate(_:timetable:)``.
    package func setRate(_ bytesPerSecond: Int64?, session: SessionKey) {
        set(bytesPerSecond, for: .session(session))
    }

    package var limitCount: Int { state.withLock { $0.limits.buckets.count } }

    /// Removes the limit of a session whose run has ended. The session's share of other limits goes to other sessions immediately.
    package func forget(session: SessionKey) {
        set(nil, for: .session(session))
        state.withLock { $0.limits.removeSession(session) }
    }

    /// Removes a deleted account and its limit.
    package func forget(account: AccountKey) {
        set(nil, for: .account(account))
    }

    /// Returns the number of bytes, up to `limit`, that a file of the session may transfer now. Counts them against all applicable limits.
    package func allowance(upTo limit: Int, session: SessionKey, account: AccountKey) -> Allowance {
        guard limit > 0 else { return Allowance(bytes: 0) }
        let (isLimited, hasTimetable) = state.withLock { ($0.limits.apply(to: session, of: account), !$0.schedule.isEmpty) }
        if hasTimetable { followTimetables() }
        guard isLimited || hasTimetable else { return Allowance(bytes: limit) }
        let now = clock.now().inSeconds
        return state.withLock { $0.limits.allowance(upTo: limit, session: session, account: account, at: now) }
    }

    private func set(_ bytesPerSecond: Int64?, _ timetable: BandwidthTimetable? = nil, for scope: RateLimits.Scope) {
        let now = clock.now().inSeconds
        state.withLock { state in
            state.schedule.set(timetable, otherwise: bytesPerSecond, for: scope)
            if timetable == nil { state.limits.set(bytesPerSecond.map { Double(max(0, $0)) }, for: scope, at: now) }
        }
        followTimetables()
    }

    /// Sets the limits of the timetables for the current time, unless they are already set.
    private func followTimetables() {
        guard !state.withLock({ $0.schedule.isEmpty }) else { return }
        let date = clock.date()
        guard !state.withLock({ $0.schedule.isCurrent(at: date) }) else { return }
        let (now, offset) = (clock.now().inSeconds, clock.utcOffset(date))
        state.withLock { state in
            for (scope, limit) in state.schedule.limits(at: date, utcOffset: offset) {
                state.limits.set(limit.map { Double(max(0, $0)) }, for: scope, at: now)
            }
        }
    }
}
