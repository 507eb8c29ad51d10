import TransferCore

extension Scheduler {
    /// Starts what can start now. Called once after all pending inputs were handled.
    package mutating func schedule(at now: Moment) -> Transaction {
        var transaction = Transaction()
        guard flags.mode == .running else { return transaction }
        while slotsInUse < sessionLimit, let key = nextEligible(at: now), let entry = entries[key] {
            guard let account = accounts[entry.account]?.account else { break }
            let activation = flags.lastActivation + 1
            mutateFlags {
                $0.lastActivation = activation
                $0.running.insert(key)
                $0.timed.remove(key)
                $0.isIdleAnnounced = false
            }
            mutate(key) {
                $0.state = .running
                $0.activation = activation
                $0.isInterrupted = false
                $0.retryAt = nil
            }
            transaction.writes.append(.setRunning(key, now.date))
            transaction.events.append(.didActivate(entry.id))
            transaction.actions.append(.run(key, entry.id, activation: activation, account))
        }
        if isIdle(at: now), !flags.isIdleAnnounced {
            mutateFlags { $0.isIdleAnnounced = true }
            transaction.events.append(.queueBecameIdle)
        }
        return transaction
    }

    /// Those that were interrupted go before the others; within each, the order of the queue decides.
    private func nextEligible(at now: Moment) -> SessionKey? {
        var first: SessionKey?
        for key in order.elements {
            guard let entry = entries[key], isEligible(entry, at: now) else { continue }
            if entry.isInterrupted { return key }
            if first == nil { first = key }
        }
        return first
    }

    private func isEligible(_ entry: Entry, at now: Moment) -> Bool {
        guard entry.state == .waiting, let account = accounts[entry.account], account.block == nil else { return false }
        if let retryAt = entry.retryAt, retryAt.uptime > now.uptime { return false }
        return account.account.endpoints.contains { transports.contains($0.transport) }
    }

    /// Whether nothing runs and nothing can start without a person. What is due at a time to come is not idle.
    package func isIdle(at now: Moment) -> Bool {
        guard slotsInUse == 0 else { return false }
        return !order.elements.contains { key in
            guard let entry = entries[key] else { return false }
            return isEligible(entry, at: Moment(uptime: entry.retryAt?.uptime ?? now.uptime, date: now.date))
        }
    }

    /// Why a waiting session does not run: its first condition that is not met, or nil if it is about to start.
    package func why(_ key: SessionKey, at now: Moment) -> WaitReason? {
        guard let entry = entries[key], entry.state == .waiting else { return nil }
        guard flags.mode == .running else { return .queueNotRunning }
        if let account = accounts[entry.account] {
            if let block = account.block { return .accountBlocked(block.error) }
            if let missing = account.account.endpoints.first?.transport,
                !account.account.endpoints.contains(where: { transports.contains($0.transport) })
            {
                return .transportMissing(missing)
            }
        }
        if let retryAt = entry.retryAt, retryAt.uptime > now.uptime { return .retry(at: retryAt.date) }
        if let blocker = flags.running.compactMap({ entries[$0] }).max(by: { $0.rank < $1.rank }) { return .order(behind: blocker.id) }
        return slotsInUse >= sessionLimit ? .queueLimit : nil
    }

    /// When the next session is due that waits for nothing but a time to come.
    package func nextDue(after now: Moment) -> Duration? {
        flags.timed.lazy.compactMap { entries[$0] }
            .filter { accounts[$0.account]?.block == nil }
            .compactMap { $0.retryAt?.uptime }
            .filter { $0 > now.uptime }
            .min()
    }

    /// A snapshot of the queue.
    package func status(at now: Moment) -> QueueStatus {
        var status = QueueStatus(
            mode: flags.mode, sessions: order.count, running: flags.running.count, waiting: 0, scheduled: 0, failed: 0, nextDue: nil,
            isIdle: isIdle(at: now))
        for entry in entries.values {
            switch entry.state {
            case .waiting:
                status.waiting += 1
                guard accounts[entry.account]?.block == nil, let retryAt = entry.retryAt, retryAt.uptime > now.uptime else { continue }
                status.scheduled += 1
                status.nextDue = min(status.nextDue ?? retryAt.date, retryAt.date)
            case .failed: status.failed += 1
            case .running, .completed, .paused, .held, .cancelled: break
            }
        }
        return status
    }
}
