import TransferCore
import TransferKit

extension ReferenceQueue {
    // MARK: Starting

    /// What follows every handled input.
    mutating func schedule(at now: Moment) {
        self.now = now
        if mode == .draining, let drainDeadline, drainDeadline <= now.uptime { interruptAll() }
        repeat {
            letGoOfOwnersThatCannotStart()
        } while activateNext() || forgetStops()
        applyRetention()
        if mode == .draining || mode == .stopping, !isAnythingRunning { mode = .stopped }
        if mode != .draining { drainDeadline = nil }
    }

    private mutating func letGoOfOwnersThatCannotStart() {
        guard mode == .running else { return }
        for owner in sessions where owner.state == .waiting && owner.displacedBy == nil && !isStartableButForSlots(owner) {
            letGo(ownedBy: owner.id)
        }
    }

    private mutating func activateNext() -> Bool {
        guard let next = precedence.first(where: { isStartable($0) }), let index = index(of: next.id) else { return false }
        sessions[index].state = .running
        sessions[index].clearLane()
        sessions[index].retryAt = nil
        sessions[index].spaceAt = nil
        for other in sessions.indices where other != index { sessions[other].stoppedAt = nil }
        beginRun(index)
        return true
    }

    /// Those that were stopped go on after a while, if nothing else does.
    private mutating func forgetStops() -> Bool {
        let due = sessions.indices.filter { index in
            guard let stoppedAt = sessions[index].stoppedAt, stoppedAt + settings.restopDelay <= now.uptime else { return false }
            return !sessions.contains { $0.id != sessions[index].id && isStartableButForSlots($0) }
        }
        for index in due { sessions[index].stoppedAt = nil }
        return !due.isEmpty
    }

    mutating func beginRun(_ index: Int) {
        runNumbers += 1
        sessions[index].run = runNumbers
        sessions[index].isToldToEnd = false
        runs[sessions[index].id, default: []].append(runNumbers)
        started.append(sessions[index].id)
        if let account = account(sessions[index].account), let endpoint = firstAvailableEndpoint(account) {
            health.begin(runNumbers, at: endpoint)
        }
    }

    mutating func tellToEnd(_ index: Int) {
        guard sessions[index].run != nil, !sessions[index].isToldToEnd else { return }
        sessions[index].isToldToEnd = true
        toldToEnd.append(sessions[index].id)
    }

    // MARK: Reports

    mutating func handle(_ content: Report.Content, of id: SessionID, runsAgo: Int) {
        guard let numbers = runs[id], numbers.count > runsAgo else { return }
        let run = numbers[numbers.count - 1 - runsAgo]
        if let leftover = leftovers.firstIndex(where: { $0.run == run }) {
            if case .ended = content {
                leftovers.remove(at: leftover)
                health.end(run)
            }
            return
        }
        guard let index = index(of: id), sessions[index].run == run else { return }
        switch content {
        case .endpointWorks(let endpoint): health.works(endpoint)
        case .endpointFailed(let endpoint, _): health.failed(endpoint, run: run, at: now)
        case .hostBusy(let endpoint, let duration): health.busy(endpoint, for: duration, at: now)
        case .ended(let outcome):
            health.end(run)
            ended(index, outcome)
        case .connected, .file, .endpoint, .attemptFailed: break
        }
    }

    private mutating func ended(_ index: Int, _ outcome: RunOutcome) {
        let wasToldToEnd = sessions[index].isToldToEnd
        sessions[index].run = nil
        sessions[index].isToldToEnd = false
        switch outcome {
        case .finished(let failure, let itemsSeen) where itemsSeen >= sessions[index].items:
            if sessions[index].state != .cancelled { end(index, as: failure == nil ? .completed : .failed) }
        case .finished: if sessions[index].state == .running { beginRun(index) }
        default:
            if !wasToldToEnd {
                giveUpSlot(index, outcome)
            } else if sessions[index].state == .running {
                // Paused and resumed before the old run had let go.
                beginRun(index)
            }
        }
    }

    /// Nobody asked the run to end, and files are left.
    private mutating func giveUpSlot(_ index: Int, _ outcome: RunOutcome) {
        sessions[index].state = .waiting
        switch outcome {
        case .interrupted, .finished:
            sessions[index].lane = .interrupted
            return
        case .backoff(let delay, _): sessions[index].retryAt = now + delay
        case .endpointsUnavailable: break
        case .accountBlocked(_, let definition):
            for account in accounts.indices where accounts[account].account == definition { accounts[account].isBlocked = true }
        case .noSpace: sessions[index].spaceAt = now.uptime + .seconds(30)
        }
        letGo(ownedBy: sessions[index].id)
    }

    mutating func end(_ index: Int, as state: SessionState) {
        sessions[index].state = state
        sessions[index].displacedBy = nil
        sessions[index].stoppedAt = nil
        sessions[index].endedAt = now.date
        sessions[index].clearLane()
        letGo(ownedBy: sessions[index].id)
        for other in sessions.indices {
            if let dependency = sessions[other].dependency, dependency.session == sessions[index].id,
                isSatisfied(dependency, by: sessions[index])
            {
                sessions[other].dependency = nil
            }
        }
    }
}
