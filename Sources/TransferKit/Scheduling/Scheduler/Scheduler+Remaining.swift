import TransferCore

extension Scheduler {
    /// The number of sessions that run, or that will start without an action by the app or the user. Includes sessions that wait for a point in
    /// time or for another such session, and removed sessions whose runs have not ended. In a started queue, the number is 0 if
    /// and only if the queue is idle.
    ///
    /// The cost grows with the number of lines (``SessionIndex/LineKey``) whose sessions can start. In a strict queue, or if sessions wait
    /// for other sessions, it also grows with the number of sessions.
    package func remaining(at now: DualInstant) -> Int {
        let live = sessionIndex.live.count + flags.removedRuns.count
        guard settings.ordering != .strict else { return live + remainingInStrictOrder(at: now) }
        var count = live + sessionsWaitingForOthers(at: now)
        for line in sessionIndex.startableLines where startsAutomatically(line, at: now) {
            count += (sessionIndex.lines[line]?.count ?? 0) + (sessionIndex.timed[line] ?? 0)
        }
        // Sessions that have a run and also wait for a point in time were counted twice.
        count -= sessionIndex.live.count { key in sessionIndex[key].map { $0.isTimed && startsAutomatically($0.line, at: now) } ?? false }
        return count
    }

    /// Whether the sessions of a line start automatically. False while paused sessions keep all slots.
    private func startsAutomatically(_ line: SessionIndex.LineKey, at now: DualInstant) -> Bool {
        guard sessionIndex.slots.paused < maxConcurrentSessions, canStartEventually(line, at: now) else { return false }
        let limit = accounts[line.account]?.account.maxConcurrentSessions ?? .max
        return sessionIndex.accountSlots[line.account]?.paused ?? 0 < limit
    }

    /// Whether a session runs, or starts automatically without waiting for another session.
    private func isActiveOrStarts(_ entry: Entry, at now: DualInstant) -> Bool {
        if sessionIndex.live.contains(entry.key) { return entry.state == .running || entry.state == .waiting }
        return (entry.isEligible || entry.isTimed) && startsAutomatically(entry.line, at: now)
    }

    /// The number of sessions that wait for another session to end or to release its slot, if that session continues automatically.
    private func sessionsWaitingForOthers(at now: DualInstant) -> Int {
        guard !sessionIndex.dependents.isEmpty || !sessionIndex.displacedByPreemptor.isEmpty else { return 0 }
        var found = Set(sessionsToRelease.filter { startsAfterOther($0, at: now) })
        let awaited = Set(sessionIndex.dependents.keys.compactMap(sessionIndex.key(of:))).union(sessionIndex.displacedByPreemptor.keys)
        var open = awaited.filter { key in sessionIndex[key].map { isActiveOrStarts($0, at: now) } ?? false }
        open.formUnion(found)
        while let key = open.popFirst() {
            let waiting = (sessionIndex[key].flatMap { sessionIndex.dependents[$0.id] } ?? [])
                .union(sessionIndex.displacedByPreemptor[key] ?? [])
            for follower in waiting where !found.contains(follower) {
                guard startsAfterOther(follower, at: now) else { continue }
                found.insert(follower)
                open.insert(follower)
            }
        }
        return found.count
    }

    /// Whether the next transactions release a session that then starts automatically.
    func isReleasing(at now: DualInstant) -> Bool {
        sessionsToRelease.contains { startsAfterOther($0, at: now) }
    }

    private var sessionsToRelease: some Sequence<SessionKey> {
        flags.releases.lazy.filter { $0.isCompleted != nil }.flatMap { release in
            sessionIndex.dependents[release.session, default: []].lazy.filter {
                release.isCompleted == true || sessionIndex.details($0).dependency?.acceptsAnyEnd == true
            }
        }
    }

    /// Whether a session waits for another session to end or to release its slot, and then starts automatically.
    private func startsAfterOther(_ key: SessionKey, at now: DualInstant) -> Bool {
        guard let entry = sessionIndex[key] else { return false }
        return waitsForSession(entry) && startsAutomatically(entry.line, at: now)
    }

    private func waitsForSession(_ entry: Entry) -> Bool {
        entry.state == .waiting && !sessionIndex.live.contains(entry.key) && !entry.conditions.isDisjoint(with: [.dependent, .displaced])
            && !entry.waitsForReleasedSpace && entry.conditions.isDisjoint(with: [.runNotEnded, .unreadable])
    }

    /// The number of sessions without a run that a strict queue starts automatically.
    private func remainingInStrictOrder(at now: DualInstant) -> Int {
        let preferred = sessionIndex.claimants.union(sessionIndex.yielded).compactMap { sessionIndex[$0] }.filter {
            $0.startPriority == .now
        }
        let candidates = (preferred + strictTurns).filter { !sessionIndex.live.contains($0.key) && isActiveOrStarts($0, at: now) }
        let starting = Set(candidates.map(\.key))
        var count = starting.count
        for key in sessionIndex.unfinished {
            guard let entry = sessionIndex[key] else { continue }
            if starting.contains(key) || sessionIndex.live.contains(key) && isActiveOrStarts(entry, at: now) { continue }
            // All later sessions wait for this session.
            guard entry.state == .waiting, !entry.waitsForReleasedSpace, entry.conditions.isDisjoint(with: [.runNotEnded, .unreadable]),
                !waitsForAction(entry), startsAutomatically(entry.line, at: now)
            else { break }
            count += 1
        }
        return count
    }

    /// Whether a session depends on a session that has ended or is missing, or on a draft. The app or the user must then act.
    private func waitsForAction(_ entry: Entry) -> Bool {
        guard entry.conditions.contains(.dependent), let dependency = sessionIndex.details(entry.key).dependency else { return false }
        guard let other = sessionIndex.key(of: dependency.session).flatMap({ sessionIndex[$0] }) else { return true }
        return other.state.isEnded || !other.isOrdered
    }
}
