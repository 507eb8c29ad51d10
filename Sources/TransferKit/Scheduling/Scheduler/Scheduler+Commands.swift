import TransferCore

extension Scheduler {
    /// Handles one input and returns its consequences. Waiting sessions start later, in ``schedule(at:)``, after all pending inputs.
    ///
    /// - Throws: ``QueueError`` if a command is invalid. Nothing is changed in this case. Other inputs never throw.
    package mutating func handle(_ input: Input, at now: DualInstant) throws(QueueError) -> Transaction {
        var transaction = Transaction()
        recordOpening(now)
        switch input {
        case .command(let command):
            let savepoint = savepoint()
            do {
                try handle(command, at: now, &transaction)
            } catch {
                rollBack(to: savepoint)
                throw error
            }
        case .report(let event): handle(event, at: now, &transaction)
        case .discarded(let result):
            if result.freesSpace { recordReleasedSpace(.probably) }
            transaction.writes.append(
                result.nextAttempt.map { .discardFailed(result.key, nextAttempt: $0, backOffUntil: result.backOffUntil) }
                    ?? .discarded(result.key))
        case .postponed(let postponement): transaction.writes.append(.postponeDiscards(postponement))
        case .diskSpace(let free): record(freeSpace: free, at: now)
        case .tick: break
        }
        flush(into: &transaction)
        return transaction
    }

    private mutating func handle(_ command: Command, at now: DualInstant, _ transaction: inout Transaction) throws(QueueError) {
        switch command {
        case .saveAccount(let account): try save(account, at: now, &transaction)
        case .replaceAccount(let previous, let account):
            guard accountKeys[account.name].flatMap({ accounts[$0]?.account }) == previous else { return }
            try save(account, at: now, &transaction)
            transaction.result.isGranted = true
        case .deleteAccount(let name, let cascades): try deleteAccount(name, cascades: cascades, &transaction)
        case .unblockAccount(let name): unblock(try accountKey(name), at: now, &transaction)
        case .retryEndpoints(let name):
            let key = try accountKey(name)
            retryEndpoints(of: key, at: now)
            endBackoffs(of: key, includingRuns: true, &transaction)
        case .setMaxConcurrentSessions(let limit, let account): try setMaxConcurrentSessions(limit, account: account, &transaction)
        case .setRateLimit(let limit, let account): try setRateLimit(limit, account: account, &transaction)
        case .setTimetable(let timetable, let account): try setTimetable(timetable, account: account, &transaction)
        case .setRetention(let retention): try setRetention(retention, &transaction)
        case .setDiskFloor(let floor): try setDiskFloor(floor, at: now, &transaction)
        case .enqueue(let drafts, let index, let expected, let isHeld):
            try enqueue(drafts, at: index, expecting: expected, isHeld: isHeld, now, &transaction)
        case .saveDrafts(let drafts): try saveDrafts(drafts, now, &transaction)
        case .addItems(let reference, let items): try add(items, to: reference, &transaction)
        case .addProgress(let reference, let progress): try add(progress, to: reference, &transaction)
        case .replaceItems(let selection, let rows, let items, let reference):
            try replaceItems(selection, rows, with: items, in: reference, &transaction)
        case .perform(let operation, let target): try perform(operation, on: target, at: now, &transaction)
        case .quarantine(let id, let reason): try quarantine([resolve(.id(id))], reason, &transaction)
        case .withdraw(let id): try withdraw(try resolve(.id(id)), &transaction)
        case .setNetwork(let condition): setNetwork(condition, at: now, &transaction)
        case .newRoute: noteNewRoute(at: now, &transaction)
        case .start: start(&transaction)
        case .stop(let mode, let deadline): stop(mode, deadline: deadline, at: now, &transaction)
        }
    }

    // MARK: Accounts

    func accountKey(_ name: String) throws(QueueError) -> AccountKey {
        guard let key = accountKeys[name] else {
            throw QueueError(.noSuchAccount, "There is no account named \"\(name)\".")
        }
        return key
    }

    private mutating func save(_ account: Account, at now: DualInstant, _ transaction: inout Transaction) throws(QueueError) {
        try account.validate()
        let before = accountKeys[account.name].flatMap { accounts[$0] }
        let key = accountKeys[account.name] ?? flags.nextAccount
        if before == nil { mutateFlags { $0.nextAccount += 1 } }
        setAccount(key, AccountEntry(account: account, lastRunWhenUnblocked: flags.lastRun))
        retryEndpoints(of: key, at: now)
        transaction.writes.append(.saveAccount(key, account))
        // Saving an account unblocks it.
        if before?.block != nil { transaction.events.append(.accountUnblocked(account: account.name)) }
        // An app may save an unchanged account often, so such a save ends no retry delays.
        if let before, before.block != nil || !before.account.isSameIdentity(as: account) {
            endBackoffs(of: key, includingRuns: true, &transaction)
        }
        if before?.account.maxConcurrentSessions != account.maxConcurrentSessions || before?.account.rateLimit != account.rateLimit
            || before?.account.timetable != account.timetable
        {
            transaction.events.append(.limitsChanged)
            transaction.actions.append(.pace(key))
        }
    }

    private mutating func deleteAccount(_ name: String, cascades: Bool, _ transaction: inout Transaction) throws(QueueError) {
        let key = try accountKey(name)
        if let count = sessionIndex.sessionsOfAccount[key], count > 0 {
            guard cascades else {
                throw QueueError(
                    .accountInUse,
                    "Cannot remove the account \"\(name)\": \(count == 1 ? "1 session refers" : "\(count) sessions refer") to it. Remove its sessions first, or remove the account together with them."
                )
            }
            let drafts = sessionIndex.drafts.sorted()
            try remove((Array(sessionIndex.order) + drafts).filter { sessionIndex[$0]?.account == key }, isForced: false, &transaction)
        }
        setAccount(key, nil)
        transaction.writes.append(.deleteAccount(key))
        transaction.actions.append(.pace(key))
    }

    /// Ends the retry delays of an account's sessions.
    ///
    /// - Parameter includingRuns: Whether to also end the waits of files in running sessions. True for a request by the app or the user.
    mutating func endBackoffs(of account: AccountKey, includingRuns: Bool = false, _ transaction: inout Transaction) {
        if includingRuns {
            let running = sessionIndex.live.filter { sessionIndex[$0]?.account == account }
            transaction.actions += running.sorted().map { .skipBackoff($0) }
        }
        for key in (sessionIndex.backoffs[account] ?? []).sorted() {
            mutate(key) { entry, details in
                entry.conditions.subtract([.backoff, .unreadable])
                details.retryAt = nil
            }
            transaction.actions.append(.skipBackoff(key))
        }
    }

    private mutating func unblock(_ key: AccountKey, at now: DualInstant, _ transaction: inout Transaction) {
        retryEndpoints(of: key, at: now)
        endBackoffs(of: key, includingRuns: true, &transaction)
        guard var entry = accounts[key], entry.block != nil else { return }
        entry.block = nil
        entry.lastRunWhenUnblocked = flags.lastRun
        setAccount(key, entry)
        transaction.writes.append(.blockAccount(key, nil))
        transaction.events.append(.accountUnblocked(account: entry.account.name))
    }

    // MARK: Limits

    private mutating func setMaxConcurrentSessions(_ limit: Int?, account name: String?, _ transaction: inout Transaction)
        throws(QueueError)
    {
        if let name {
            let key = try accountKey(name)
            try edit(key, &transaction) { $0.maxConcurrentSessions = limit }
        } else {
            guard limit.map({ $0 >= 1 }) ?? true else {
                throw QueueError(.invalidRequest, "The queue's maximum number of active sessions must be at least 1.")
            }
            mutateFlags { flags in
                flags.maxConcurrentSessions = limit
                flags.maxConcurrentSessionsOverride = nil
            }
            transaction.events.append(.limitsChanged)
        }
    }

    private mutating func setRateLimit(_ limit: Int64?, account name: String?, _ transaction: inout Transaction) throws(QueueError) {
        if let name {
            let key = try accountKey(name)
            try edit(key, &transaction) { $0.rateLimit = limit }
        } else {
            guard limit.map({ $0 >= 1 }) ?? true else {
                throw QueueError(.invalidRequest, "A rate limit must be at least 1 byte per second.")
            }
            mutateFlags { $0.rateLimit = limit }
            transaction.events.append(.limitsChanged)
            transaction.actions.append(.pace(nil))
        }
    }

    private mutating func setTimetable(_ timetable: BandwidthTimetable?, account name: String?, _ transaction: inout Transaction)
        throws(QueueError)
    {
        if let name {
            let key = try accountKey(name)
            try edit(key, &transaction) { $0.timetable = timetable }
        } else {
            try timetable?.validate()
            mutateFlags { $0.timetable = timetable }
            transaction.events.append(.limitsChanged)
            transaction.actions.append(.pace(nil))
        }
    }

    private mutating func setRetention(_ retention: Retention?, _ transaction: inout Transaction) throws(QueueError) {
        try retention?.validate()
        mutateFlags { $0.retention = retention }
        sessionIndex.keepEnds(self.retention != .keepAll)
        transaction.events.append(.limitsChanged)
    }

    private mutating func setDiskFloor(_ floor: Int64?, at now: DualInstant, _ transaction: inout Transaction) throws(QueueError) {
        guard floor.map((0...FileSize.maximum).contains) ?? true else {
            throw QueueError(.invalidRequest, "The minimum free space must be from 0 bytes to 64 PiB.")
        }
        mutateFlags { flags in
            flags.diskFloor = floor
            flags.diskFloorOverride = nil
        }
        if let free = flags.scarceSpace { record(freeSpace: free, at: now) }
        transaction.events.append(.limitsChanged)
    }

    /// Changes an account's limits. Unlike ``Command/saveAccount(_:)``, does not unblock the account.
    private mutating func edit(_ key: AccountKey, _ transaction: inout Transaction, _ change: (inout Account) -> Void) throws(QueueError) {
        guard var entry = accounts[key] else { return }
        change(&entry.account)
        try entry.account.validate()
        setAccount(key, entry)
        transaction.writes += [.saveAccount(key, entry.account), .blockAccount(key, entry.block)]
        transaction.events.append(.limitsChanged)
        transaction.actions.append(.pace(key))
    }

    // MARK: The queue

    private mutating func start(_ transaction: inout Transaction) {
        guard flags.mode != .running else { return }
        mutateFlags {
            $0.mode = .running
            $0.drainDeadline = nil
            $0.isIdleAnnounced = false
        }
        transaction.events.append(.queueStarted)
        requestCredentials(&transaction)
    }

    /// Requests credentials for accounts that an earlier process left blocked, because this process has not requested them yet.
    private mutating func requestCredentials(_ transaction: inout Transaction) {
        for key in accounts.keys.sorted() {
            guard var entry = accounts[key], !entry.hasRequestedCredentials, let error = entry.block?.error,
                error.failureClass == .credentials
            else {
                continue
            }
            entry.hasRequestedCredentials = true
            setAccount(key, entry)
            transaction.events.append(.needsCredentials(account: entry.account.name, error))
        }
    }

    /// The longest deadline of a drain. Longer deadlines are shortened to this duration.
    private static let longestDeadline = Duration.seconds(100 * 366 * 24 * 3_600)

    private mutating func stop(_ mode: StopMode, deadline: Duration?, at now: DualInstant, _ transaction: inout Transaction) {
        guard flags.mode != .stopped else { return }
        if flags.mode == .running { mutateFlags { $0.hasInterrupted = false } }
        switch mode {
        case .interrupt: interruptAll(&transaction)
        case .drain:
            guard flags.mode != .stopping else { return }
            mutateFlags {
                $0.mode = .draining
                $0.drainDeadline = deadline.map { now.uptime + min($0, Self.longestDeadline) }
            }
        }
        finishStoppingIfNoRuns(&transaction)
    }

    mutating func interruptAll(_ transaction: inout Transaction) {
        mutateFlags {
            $0.mode = .stopping
            $0.drainDeadline = nil
        }
        for key in sessionIndex.live.sorted() where sessionIndex[key]?.state == .running {
            mutateFlags { $0.hasInterrupted = true }
            requestStop(key, &transaction) { entry, _ in
                entry.state = .waiting
                entry.startPriority = .interrupted
            }
        }
    }

    mutating func finishStoppingIfNoRuns(_ transaction: inout Transaction) {
        guard flags.mode == .stopping || flags.mode == .draining, !hasLiveRuns else { return }
        mutateFlags {
            $0.mode = .stopped
            $0.drainDeadline = nil
        }
        transaction.events.append(.queueStopped)
    }
}
