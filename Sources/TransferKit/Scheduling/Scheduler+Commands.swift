import TransferCore

extension Scheduler {
    /// Takes one input and says what follows. What may start because of it is left to ``schedule(at:)``, once for all pending inputs.
    ///
    /// - Throws: When a command makes no sense; nothing is changed then. Reports and ticks never throw.
    package mutating func handle(_ input: Input, at now: Moment) throws(QueueError) -> Transaction {
        switch input {
        case .command(let command): try handle(command, at: now)
        case .report(let report): handle(report, at: now)
        case .tick: Transaction()
        }
    }

    private mutating func handle(_ command: Command, at now: Moment) throws(QueueError) -> Transaction {
        switch command {
        case .saveAccount(let account): try save(account)
        case .deleteAccount(let name, _): try deleteAccount(name)
        case .unblockAccount(let name): try unblockAccount(name)
        case .enqueue(let drafts, _, _): try enqueue(drafts, at: now)
        case .perform(.remove, .group(.sessions(let ids))): try remove(ids)
        case .start: start()
        case .stop: stop()
        case .perform, .addItems, .setSessionLimit, .setRateLimit: Transaction()
        }
    }

    // MARK: Accounts

    private func accountKey(_ name: String) throws(QueueError) -> AccountKey {
        guard let key = accountKeys[name] else {
            throw QueueError(.noSuchAccount, "There is no account named \"\(name)\".")
        }
        return key
    }

    private mutating func save(_ account: Account) throws(QueueError) -> Transaction {
        try account.validate()
        var transaction = Transaction()
        if let key = accountKeys[account.name], let before = accounts[key] {
            // An edit answers whatever blocked the account.
            setAccount(key, AccountEntry(account: account, block: nil, sessions: before.sessions))
            transaction.writes.append(.saveAccount(key, account))
            if before.block != nil { transaction.events.append(.accountUnblocked(account: account.name)) }
        } else {
            let key = flags.nextAccount
            mutateFlags { $0.nextAccount += 1 }
            setAccount(key, AccountEntry(account: account))
            transaction.writes.append(.saveAccount(key, account))
        }
        return transaction
    }

    private mutating func deleteAccount(_ name: String) throws(QueueError) -> Transaction {
        let key = try accountKey(name)
        if let count = accounts[key]?.sessions, count > 0 {
            throw QueueError(
                .accountInUse,
                "The account \"\(name)\" can't be removed: \(count) session\(count == 1 ? "" : "s") refer to it. Remove those first.")
        }
        setAccount(key, nil)
        return Transaction(writes: [.deleteAccount(key)])
    }

    private mutating func unblockAccount(_ name: String) throws(QueueError) -> Transaction {
        let key = try accountKey(name)
        guard var entry = accounts[key], entry.block != nil else { return Transaction() }
        entry.block = nil
        setAccount(key, entry)
        return Transaction(writes: [.blockAccount(key, nil)], events: [.accountUnblocked(account: name)])
    }

    // MARK: Sessions

    private mutating func enqueue(_ drafts: [SessionDraft], at now: Moment) throws(QueueError) -> Transaction {
        for draft in drafts {
            _ = try accountKey(draft.account)
            guard keys[draft.id] == nil else {
                throw QueueError(.invalidRequest, "There is a session \(draft.id) already.")
            }
        }
        var transaction = Transaction()
        let index = order.count
        for draft in drafts {
            let account = try accountKey(draft.account)
            let key = flags.nextSession
            let rank = flags.nextRank
            mutateFlags {
                $0.nextSession += 1
                $0.nextRank += Self.rankGap
                $0.isIdleAnnounced = false
            }
            insert(key, Entry(id: draft.id, rank: rank, account: account, state: .waiting))
            transaction.writes.append(.insertSession(key, rank: rank, account: account, draft, createdAt: now.date))
        }
        changeOrder(.added(drafts.map(\.id), index: index), &transaction)
        return transaction
    }

    private mutating func remove(_ ids: [SessionID]) throws(QueueError) -> Transaction {
        var found: [SessionKey] = []
        for id in ids {
            guard let key = keys[id] else { throw QueueError(.noSuchSession, "There is no session \(id).") }
            found.append(key)
        }
        let wanted = Set(found)
        let indices = order.elements.indices.filter { wanted.contains(order[$0]) }
        found = indices.map { order[$0] }
        let removed = found.compactMap { entries[$0]?.id }
        var transaction = Transaction()
        for key in found {
            guard let entry = entries[key], take(key) != nil else { continue }
            if entry.state == .running {
                mutateFlags {
                    $0.running.remove(key)
                    $0.ending.insert(entry.activation)
                }
                transaction.actions.append(.interrupt(key, activation: entry.activation))
                transaction.events.append(.didDeactivate(entry.id))
            }
            transaction.writes.append(.deleteSession(key))
        }
        changeOrder(.removed(removed, indices: indices), &transaction)
        return transaction
    }

    private mutating func changeOrder(_ change: QueueEvent.Kind, _ transaction: inout Transaction) {
        // Nothing was added or removed.
        if case .added([], _) = change { return }
        if case .removed([], _) = change { return }
        let revision = flags.orderRevision + 1
        mutateFlags { $0.orderRevision = revision }
        transaction.events += [.willChangeQueue(orderRevision: revision), change, .didChangeQueue(orderRevision: revision)]
    }

    // MARK: The queue

    private mutating func start() -> Transaction {
        guard flags.mode != .running else { return Transaction() }
        mutateFlags {
            $0.mode = .running
            $0.isIdleAnnounced = false
        }
        return Transaction(events: [.queueStarted])
    }

    private mutating func stop() -> Transaction {
        var transaction = Transaction()
        guard flags.mode == .running else { return transaction }
        mutateFlags { $0.mode = .stopping }
        for key in flags.running.sorted() {
            if let entry = entries[key] { transaction.actions.append(.interrupt(key, activation: entry.activation)) }
        }
        finishStoppingIfEmpty(&transaction)
        return transaction
    }

    package mutating func finishStoppingIfEmpty(_ transaction: inout Transaction) {
        guard flags.mode == .stopping, slotsInUse == 0 else { return }
        mutateFlags { $0.mode = .stopped }
        transaction.events.append(.queueStopped)
    }
}
