import TransferCore
import TransferKit

extension ReferenceQueue {
    // MARK: Starting

    /// Starts and stops sessions. Called after each input.
    mutating func schedule(at now: DualInstant) {
        self.now = now
        // Once a start time has passed, it no longer delays the session, even if the clock is set back.
        for index in sessions.indices where !isTooEarly(sessions[index]) { sessions[index].notBefore = nil }
        if mode == .draining, let drainDeadline, drainDeadline <= now.uptime { interruptAll() }
        repeat {
            restoreDisplacedByIdlePreemptors()
        } while activateNext() || forgetYields()
        wakeSessionsThatLackSpace()
        applyRetention()
        if mode == .draining || mode == .stopping, !isAnythingRunning { mode = .stopped }
        if mode != .draining { drainDeadline = nil }
    }

    private mutating func restoreDisplacedByIdlePreemptors() {
        guard mode == .running else { return }
        while let preemptor = sessions.first(where: { isIdlePreemptor($0) }) { restoreDisplaced(by: preemptor.id) }
    }

    private func isIdlePreemptor(_ preemptor: ReferenceSession) -> Bool {
        preemptor.state == .waiting && preemptor.displacedBy == nil && !canStartIfSlotIsFree(preemptor)
            && sessions.contains { $0.displacedBy == preemptor.id }
    }

    private mutating func activateNext() -> Bool {
        guard let next = precedence.first(where: { isStartable($0) }), let index = index(of: next.id) else { return false }
        sessions[index].state = .running
        sessions[index].hasBegun = true
        sessions[index].clearStartPriority()
        sessions[index].retryAt = nil
        sessions[index].spaceAt = nil
        for other in sessions.indices where other != index { sessions[other].yieldedAt = nil }
        beginRun(index)
        return true
    }

    /// Lets sessions that yielded start again after `yieldDelay`, if no other session can start. Returns whether the wait of any
    /// session ended.
    private mutating func forgetYields() -> Bool {
        guard mode == .running else { return false }
        let due = sessions.indices.filter { index in
            guard let yieldedAt = sessions[index].yieldedAt, yieldedAt + settings.yieldDelay <= now.uptime else { return false }
            return !sessions.contains {
                $0.id != sessions[index].id && $0.run == nil && canStartIfSlotIsFree($0)
                    && slotsInUse(ofAccount: $0.account) < limit(ofAccount: $0.account)
            }
        }
        for index in due { sessions[index].yieldedAt = nil }
        return !due.isEmpty
    }

    mutating func beginRun(_ index: Int) {
        runNumbers += 1
        sessions[index].run = runNumbers
        sessions[index].isStopRequested = false
        sessions[index].hasNewItems = false
        sessions[index].runAgainMark = 0
        sessions[index].isSpaceReleased = false
        runs[sessions[index].id, default: []].append(runNumbers)
        started.append(sessions[index].id)
        if let account = account(sessions[index].account), let endpoint = firstAvailableEndpoint(account) {
            health.begin(runNumbers, at: endpoint, now)
        }
    }

    mutating func requestStop(_ index: Int) {
        guard sessions[index].run != nil, !sessions[index].isStopRequested else { return }
        sessions[index].isStopRequested = true
        stopRequested.append(sessions[index].id)
    }

    // MARK: Run events

    mutating func handle(_ content: RunEvent.Content, of id: SessionID, runsAgo: Int) {
        guard let numbers = runs[id], numbers.count > runsAgo else { return }
        let run = numbers[numbers.count - 1 - runsAgo]
        if let leftover = leftovers.firstIndex(where: { $0.run == run }) {
            if case .ended = content {
                leftovers.remove(at: leftover)
                health.end(run)
                releaseSpace(isCertain: true)
            }
            return
        }
        guard let index = index(of: id), sessions[index].run == run else { return }
        switch content {
        case .endpointWorks(let endpoint): works(endpoint)
        case .endpointFailed(let endpoint, let error):
            health.failed(endpoint, isOutage: isOutage(error), by: run, at: now)
        case .hostBusy(let endpoint, let duration): health.busy(endpoint, for: duration, at: now)
        case .ended(let outcome):
            health.end(run)
            switch outcome {
            case .interrupted, .finished(failure: .some, _): releaseSpace(isCertain: true)
            case .noSpace: break
            default: releaseSpace(isCertain: false)
            }
            // If the session must wait after this run, a `run` call that came during the run takes effect now.
            let mark = sessions[index].state == .running ? sessions[index].runAgainMark : 0
            sessions[index].runAgainMark = 0
            ended(index, run, outcome)
            if mark != 0, sessions[index].state == .waiting { runNow(index, mark: mark) }
        case .file(_, .completed(_, let endpoint)):
            releaseSpace(isCertain: false)
            sessions[index].runAgainMark = 0
            sessions[index].hasTransferred = true
            works(endpoint)
        case .waitsSkipped: sessions[index].runAgainMark = 0
        case .connected, .file(_, .checkpoint):
            sessions[index].runAgainMark = 0
            sessions[index].hasTransferred = true
        case .endpoint(let endpoint): health.uses(endpoint, run)
        case .probe(let endpoint): health.probe(endpoint, run, now)
        case .file(_, .failed): releaseSpace(isCertain: false)
        case .file, .expansion, .endpointChanged, .attemptFailed, .times, .abandoned: break
        }
    }

    private mutating func works(_ endpoint: Endpoint) {
        if health.breakers.contains(where: { $0.matches(endpoint) && $0.openUntil != nil }) {
            for index in sessions.indices where account(sessions[index].account)?.account.endpoints.contains(endpoint) == true {
                if sessions[index].retryAt != nil { sessions[index].retryAt = sessions[index].ownRetryAt }
            }
        }
        health.works(endpoint)
    }

    private mutating func ended(_ index: Int, _ run: UInt64, _ outcome: RunOutcome) {
        let wasStopRequested = sessions[index].isStopRequested
        let hasNewItems = sessions[index].hasNewItems
        sessions[index].run = nil
        sessions[index].isStopRequested = false
        sessions[index].hasNewItems = false
        if case .accountBlocked(_, let refused) = outcome { block(refused, accountNumber: sessions[index].account, run: run) }
        if case .finished(let failure, _) = outcome, !hasNewItems, sessions[index].state != .cancelled {
            return end(index, as: failure == nil ? .completed : .failed)
        }
        if case .finished = outcome, !wasStopRequested { return beginNextRun(index) }
        if !wasStopRequested { return giveUpSlot(index, outcome) }
        if sessions[index].state == .running { return beginNextRun(index) }
        satisfyDependents(of: sessions[index])
    }

    /// Begins another run in the same activation. If the session can't run now, it releases its slot.
    private mutating func beginNextRun(_ index: Int) {
        if mode == .running || mode == .draining, isAble(sessions[index]) { beginRun(index) } else { giveUpSlot(index, .interrupted) }
    }

    private mutating func block(_ refused: Account, accountNumber: Int, run: UInt64) {
        for index in accounts.indices where accounts[index].number == accountNumber && run > accounts[index].latestRunAtUnblocking {
            let current = accounts[index].account
            if current.name == refused.name, current.endpoints == refused.endpoints { accounts[index].isBlocked = true }
        }
    }

    private func isOutage(_ error: TransferError) -> Bool { error.failureClass == .unreachable || error.code == .serverUnavailable }

    /// Returns the delay of a session whose endpoints are all unavailable: the time until the first endpoint may be probed, plus 10 s for
    /// each session that may probe first (at most 290 s). Returns zero if an endpoint is available, or if the account is blocked.
    private func delayForOtherProbes(of session: ReferenceSession) -> Duration {
        guard let account = account(session.account), !account.isBlocked, firstAvailableEndpoint(account) == nil,
            let until = usableEndpoints(account).map({ health.unavailableUntil($0, at: now) }).min()
        else { return .zero }
        let others = sessions.count { $0.id != session.id && $0.account == session.account && isEligible($0) }
        return until - now.uptime + .seconds(10) * min(others, 29)
    }

    /// Makes a session release its slot and wait, after a run that did not finish the session.
    private mutating func giveUpSlot(_ index: Int, _ outcome: RunOutcome) {
        sessions[index].state = .waiting
        switch outcome {
        case .interrupted, .finished:
            sessions[index].startPriority = .interrupted
            return
        case .backoff(let delay, let error):
            sessions[index].retryAt = now + (isOutage(error) ? max(delay, delayForOtherProbes(of: sessions[index])) : delay)
            sessions[index].ownRetryAt = now + delay
        case .endpointsUnavailable: waitForAnotherEndpoint(index)
        case .accountBlocked: break
        case .noSpace: sessions[index].spaceAt = now.uptime + .seconds(30)
        }
        restoreDisplaced(by: sessions[index].id)
    }

    private mutating func releaseSpace(isCertain: Bool) { releasedSpace = releasedSpace == true ? true : isCertain }

    /// After a release of space, the sessions that wait for space check the space again 1 s from now, or 5 s after their last check, whichever is
    /// later. If the release is uncertain, they check only once no session runs.
    private mutating func wakeSessionsThatLackSpace() {
        guard let isCertain = releasedSpace, isCertain || !sessions.contains(where: { $0.run != nil }) else { return }
        for index in sessions.indices where sessions[index].state == .waiting && !sessions[index].isSpaceReleased {
            guard lacksSpace(sessions[index]), let spaceAt = sessions[index].spaceAt else { continue }
            sessions[index].spaceAt = max(now.uptime + .seconds(1), spaceAt - .seconds(25))
            sessions[index].isSpaceReleased = true
        }
        releasedSpace = sessions.contains { $0.run != nil } ? false : nil
    }

    /// Makes a session wait for one of the unavailable endpoints, if other endpoints are available but can't serve this session.
    private mutating func waitForAnotherEndpoint(_ index: Int) {
        guard isAble(sessions[index]), let account = account(sessions[index].account) else { return }
        let unavailable = usableEndpoints(account).filter { !health.isAvailable($0, at: now) }
        let wait = (unavailable.map { health.unavailableUntil($0, at: now) }.min() ?? now.uptime) - now.uptime
        sessions[index].retryAt = now + max(wait, .seconds(1))
        sessions[index].ownRetryAt = now
    }

    mutating func end(_ index: Int, as state: SessionState) {
        sessions[index].state = state
        sessions[index].hasBegun = false
        sessions[index].retryAt = nil
        sessions[index].spaceAt = nil
        sessions[index].displacedBy = nil
        sessions[index].yieldedAt = nil
        sessions[index].endedAt = now.date
        sessions[index].keptSince = steadyDate
        sessions[index].clearStartPriority()
        restoreDisplaced(by: sessions[index].id)
        satisfyDependents(of: sessions[index])
    }

    mutating func satisfyDependents(of session: ReferenceSession) {
        for other in sessions.indices {
            if let dependency = sessions[other].dependency, dependency.session == session.id, isSatisfied(dependency, by: session) {
                sessions[other].dependency = nil
            }
        }
    }
}
