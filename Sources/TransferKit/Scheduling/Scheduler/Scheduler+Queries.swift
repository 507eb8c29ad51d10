import Foundation
import TransferCore

extension Scheduler {
    /// The data of a session for the callers of the scheduler.
    package struct View: Sendable, Equatable {
        package var id: SessionID
        package var key: SessionKey
        package var account: String
        /// The visible state. A session counts as running until its run has ended.
        package var state: SessionState
        /// Whether the session's run was interrupted and has not ended yet.
        package var isEnding: Bool
        /// The stored state; see ``Entry/state``.
        package var target: SessionState
        package var holdsSlot: Bool
        /// The number of the session's run that has not ended; nil if no run is in progress.
        package var run: UInt64?
    }

    /// All sessions in order, and then all drafts. For tests only, because it takes time proportional to the number of sessions.
    package var sessions: [View] { (Array(sessionIndex.order) + sessionIndex.drafts.sorted()).compactMap { view($0) } }

    package func view(_ key: SessionKey) -> View? {
        guard let entry = sessionIndex[key] else { return nil }
        let run = sessionIndex.details(key).run
        return View(
            id: entry.id, key: key, account: accounts[entry.account]?.account.name ?? "", state: entry.shownState,
            isEnding: entry.conditions.contains(.stopping), target: entry.state, holdsSlot: entry.holdsSlot, run: run == 0 ? nil : run)
    }

    // MARK: Idleness and time

    /// Whether the queue was started, but no session runs, and none can start now, or later just because time passes. A queue with sessions
    /// that are due later is not idle.
    ///
    /// Called for each transaction, so this method must not visit all lines (``SessionIndex/LineKey``). It skips lines that are set aside
    /// until an event, and stops at the first line that can start.
    package func isIdle(at now: DualInstant) -> Bool {
        guard flags.mode == .running, !hasLiveRuns, !isReleasing(at: now) else { return false }
        // If paused sessions keep all slots, the app or the user must act.
        guard sessionIndex.slots.total < maxConcurrentSessions, permitsStarts else { return true }
        if settings.ordering == .strict {
            let wanted = sessionIndex.claimants.union(sessionIndex.yielded).compactMap { sessionIndex[$0] }
            if wanted.contains(where: { $0.startPriority == .now && ($0.isEligible || $0.isTimed) && canStartEventually($0.line, at: now) })
            {
                return false
            }
            return !strictTurns.contains { ($0.isEligible || $0.isTimed) && canStartEventually($0.line, at: now) }
        }
        return !sessionIndex.startableLines.contains { hasSlot($0.account) && canStartEventually($0, at: now) }
    }

    /// Whether the network and the free disk space permit any session to start. If not, no line needs to be examined or set aside: a change
    /// of either recalls all lines.
    var permitsStarts: Bool { flags.scarceSpace == nil && flags.network != .unavailable }

    /// Whether a session of a line can start now, or later just because time passes.
    func canStartEventually(_ line: SessionIndex.LineKey, at now: DualInstant) -> Bool {
        guard flags.scarceSpace == nil, flags.network.permits(needsCheapNetwork: line.needsCheapNetwork),
            flags.abandoned.count < Self.maximumAbandoned
        else { return false }
        return switch ability(of: line, at: now) {
        case .able, .unavailable(_?): true
        case .unavailable(nil), .blocked, .transportMissing, .networkConstrained, .diskBelowFloor, .runsNotEnded: false
        }
    }

    /// The uptime at which the scheduler must run again if no other event occurs; nil if time alone changes nothing.
    package func nextDue(after now: DualInstant) -> Duration? {
        var due: [Duration] = []
        if let first = sessionIndex.due.first { due.append(.nanoseconds(first.due)) }
        if let first = sessionIndex.dueDates.first {
            // The clock may jump, so check again after `longestSleep` at the latest.
            let wait = Duration.milliseconds(first.due - now.date.milliseconds)
            due.append(now.uptime + min(wait, Self.longestSleep))
        }
        if case .count(let count) = retention, (sessionIndex.counts[.completed] ?? 0) > count { due.append(now.uptime) }
        if !flags.releases.isEmpty { due.append(now.uptime) }
        if let deadline = nextDeadline(after: now) { due.append(deadline) }
        if flags.mode == .draining, let deadline = flags.drainDeadline { due.append(deadline) }
        if case .age(let age) = retention, let first = sessionIndex.ends.first {
            let wait = Duration.milliseconds(first.due - steadyDate(at: now).milliseconds) + age
            due.append(now.uptime + min(wait, Self.longestSleep))
        }
        if flags.mode == .running {
            if let recall = sessionIndex.heads.nextRecall { due.append(recall) }
            if settings.ordering == .strict {
                // The lines of these sessions are not always set aside, so `nextRecall` does not always include them.
                for entry in strictTurns { if case .unavailable(let until?) = ability(of: entry, at: now) { due.append(until) } }
            }
            if flags.scarceSpace != nil, !sessionIndex.lines.isEmpty { due.append(flags.diskCheckAt) }
        }
        return due.min().map { max($0, now.uptime) }
    }

    private static let longestSleep = Duration.seconds(60)

    // MARK: Wait reasons

    /// The first reason why a waiting session does not run; nil if the session is about to start, or is not waiting.
    package func why(_ key: SessionKey, at now: DualInstant) -> WaitReason? {
        guard let entry = sessionIndex[key], entry.state == .waiting, !entry.conditions.contains(.stopping) else { return nil }
        if let reason = ownReason(entry, at: now) { return reason }
        guard flags.mode == .running else { return .queueNotRunning }
        return orderReason(entry, at: now) ?? slotReason(entry)
    }

    private func ownReason(_ entry: Entry, at now: DualInstant) -> WaitReason? {
        let details = sessionIndex.details(entry.key)
        if entry.conditions.contains(.runNotEnded) { return .lastRunNotEnded }
        if entry.conditions.contains(.yielded) { return .yielded }
        if entry.conditions.contains(.displaced), let preemptor = details.displacedBy.flatMap({ sessionIndex[$0] }) {
            return .displaced(by: preemptor.id)
        }
        if entry.conditions.contains(.backoff), let retryAt = details.retryAt { return .retry(at: retryAt.date) }
        if entry.conditions.contains(.early), let notBefore = details.notBefore { return .notBefore(notBefore) }
        if entry.conditions.contains(.dependent), let dependency = details.dependency {
            let state = sessionIndex.key(of: dependency.session).flatMap { sessionIndex[$0] }?.shownState ?? .waiting
            return .after(dependency.session, state)
        }
        switch ability(of: entry, at: now) {
        case .able: break
        case .blocked(let error): return .accountBlocked(error)
        case .transportMissing(let transport): return .transportMissing(transport)
        case .unavailable(let until):
            let failure = flags.health.failure(at: accounts[entry.account]?.account.endpoints ?? [], at: now.uptime)
            return .endpointsUnavailable(until: now.date + ((until ?? now.uptime) - now.uptime), failure)
        case .networkConstrained: return .networkConstraint(flags.network)
        case .diskBelowFloor(let free): return .diskBelowFloor(free: free, floor: diskFloor)
        case .runsNotEnded(let count): return .runsNotEnded(count)
        }
        if entry.conditions.contains(.noSpace), let shortage = details.shortage { return .noSpace(shortage) }
        return nil
    }

    /// The reason if other sessions start first; nil if none does. Among the sessions that can start, names the one directly before this
    /// session. If the order of a strict queue prevents the start, names the first unfinished session, even if that session can't start.
    private func orderReason(_ entry: Entry, at now: DualInstant) -> WaitReason? {
        func isAble(_ line: SessionIndex.LineKey) -> Bool { ability(of: line, at: now).isAble }
        guard settings.ordering == .strict, entry.startPriority != .now else {
            return sessionIndex.last(before: entry, at: now.uptime, where: isAble).map { .order(after: $0.id) }
        }
        guard hasTurn(entry) else {
            return sessionIndex.unfinished.first.flatMap { sessionIndex[$0] }.map { .strictOrder(after: $0.id) }
        }
        // Only the first unfinished session, and sessions that have begun, have their turn. In a strict queue, only sessions with the start
        // priority `now` start before the sessions in queue order.
        let earlier =
            sessionIndex.lastBegun(before: entry, where: isAble)
            ?? sessionIndex.last(before: SessionIndex.Standing.afterClaimants, at: now.uptime, where: isAble)
        return earlier.map { .order(after: $0.id) }
    }

    private func slotReason(_ entry: Entry) -> WaitReason? {
        let paused = sessionIndex.paused.compactMap { sessionIndex[$0] }.filter { $0.holdsSlot && !$0.conditions.contains(.stopping) }
        if !hasSlot(entry.account) {
            let keeper = paused.filter { $0.account == entry.account }.min { $0.rank < $1.rank }
            return keeper.map { .slotHeld(by: $0.id) } ?? .accountLimit
        }
        guard slotsInUse >= maxConcurrentSessions else { return nil }
        return paused.min { $0.rank < $1.rank }.map { .slotHeld(by: $0.id) } ?? .queueLimit
    }

    // MARK: Status

    /// The number of sessions that wait only for a point in time or for an unavailable endpoint, and the time at which the first of them
    /// may start. Visits all lines.
    private func scheduled(at now: DualInstant) -> (count: Int, first: Date?) {
        var count = 0
        var due: [Date] = []
        for (line, sessions) in sessionIndex.timed where accounts[line.account]?.block == nil { count += sessions }
        if count > 0 {
            if let first = sessionIndex.due.first { due.append(now.date + (.nanoseconds(first.due) - now.uptime)) }
            if let first = sessionIndex.dueDates.first { due.append(Date(milliseconds: first.due)) }
        }
        for (key, line) in sessionIndex.lines {
            guard case .unavailable(let until?) = ability(of: key, at: now) else { continue }
            count += line.inOrder.count + line.prioritized.keys.count
            due.append(now.date + (until - now.uptime))
        }
        return (count, due.min().map { max($0, now.date) })
    }

    package func status(at now: DualInstant) -> QueueStatus {
        let counts = sessionIndex.counts
        let (scheduled, nextDue) = scheduled(at: now)
        var status = QueueStatus(
            mode: flags.mode, sessions: sessionIndex.count, running: counts[.running] ?? 0, waiting: counts[.waiting] ?? 0,
            scheduled: scheduled,
            paused: counts[.paused] ?? 0, held: counts[.held] ?? 0, cancelled: counts[.cancelled] ?? 0, completed: counts[.completed] ?? 0,
            failed: counts[.failed] ?? 0, nextDue: nextDue,
            isIdle: isIdle(at: now), orderRevision: flags.orderRevision, maxConcurrentSessions: maxConcurrentSessions,
            rateLimit: flags.rateLimit, retention: retention, diskFloor: diskFloor, network: flags.network)
        status.drafts = sessionIndex.drafts.count
        status.timetable = flags.timetable
        return status
    }
}
