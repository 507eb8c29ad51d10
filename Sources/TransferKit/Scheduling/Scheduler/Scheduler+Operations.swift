import TransferCore

extension Scheduler {
    mutating func perform(
        _ operation: SessionOperation, on target: SessionTarget, at now: DualInstant, _ transaction: inout Transaction
    ) throws(QueueError) {
        let keys: [SessionKey]
        let isGroup: Bool
        switch target {
        case .one(let reference): (keys, isGroup) = ([try resolve(reference)], false)
        case .group(let group): (keys, isGroup) = (try resolve(group), true)
        case .found(let ids, let group), .more(let ids, let group, _):
            (keys, isGroup) = (try resolve(.sessions(ids.filter { belongs($0, to: group) })), true)
        }
        transaction.result.part.last = keys.last.flatMap { sessionIndex[$0]?.id }
        switch operation {
        case .enqueue(let destination, let isHeld):
            return try enqueueDrafts(keys, isGroup: isGroup, to: destination, isHeld: isHeld, &transaction)
        case .move(let destination):
            let keys = try withoutDrafts(keys, isGroup: isGroup, operation)
            try move(keys, to: destination, &transaction)
            // The dependencies were checked once for the whole group, before the first part was moved. Until the last part is moved, the
            // order may violate dependencies.
            if case .more = target { return }
            return try checkDependencies(of: keys)
        case .remove(let isForced): return try remove(keys, isForced: isForced, &transaction)
        case .update(let update): try check(update)
        default: break
        }
        var mark = flags.lastMark + 1
        if case .more(_, _, let given) = target { mark = given }
        mutateFlags { $0.lastMark = max($0.lastMark, mark) }
        transaction.result.part.mark = mark
        var changed = ChangedSessions()
        for key in keys {
            guard let entry = sessionIndex[key] else { continue }
            do {
                guard try apply(operation, to: entry, mark: mark, at: now, &changed, &transaction) else { continue }
                transaction.result.sessions.append(entry.id)
            } catch {
                if !isGroup { throw error }
            }
        }
        changed.append(to: &transaction)
    }

    /// Checks an operation on a large group, before the operation is performed in several parts.
    ///
    /// - Returns: The sessions in the order of the queue, and the operation for the first part. For a move, the operation contains the
    ///   destination of the whole group, because the destination of the first part alone could differ.
    package func check(_ operation: SessionOperation, onAll ids: [SessionID]) throws(QueueError) -> ([SessionID], SessionOperation) {
        let keys = try resolve(.sessions(ids))
        let sessions = keys.compactMap { sessionIndex[$0]?.id }
        switch operation {
        case .move(let destination):
            let keys = keys.filter { sessionIndex[$0]?.isOrdered == true }
            return (sessions, .move(to: try resolveDestination(of: keys, movedTo: destination)))
        case .remove(isForced: false): try checkDependents(of: keys)
        case .update(let update): try check(update)
        default: break
        }
        return (sessions, operation)
    }

    /// The sessions whose state an operation changed immediately. One event for each state reports them.
    struct ChangedSessions {
        var sessions: [(state: SessionState, ids: [SessionID])] = []

        mutating func add(_ id: SessionID, _ state: SessionState) {
            if let index = sessions.firstIndex(where: { $0.state == state }) {
                sessions[index].ids.append(id)
            } else {
                sessions.append((state, [id]))
            }
        }

        func append(to transaction: inout Transaction) {
            for (state, ids) in sessions { transaction.events.append(state == .cancelled ? .cancelled(ids) : .changed(ids, state)) }
        }
    }

    /// The error for an operation that the session's state does not permit.
    ///
    /// - Parameter participle: The participle of the operation, for example "paused".
    func invalidTransition(_ entry: Entry, _ participle: String, _ advice: String = "") -> QueueError {
        let (state, advice) = entry.isOrdered ? (entry.state.rawValue, advice) : ("a draft", " Enqueue it first.")
        return QueueError(.invalidTransition, "The session \(entry.id) is \(state), so it can't be \(participle).\(advice)")
    }

    /// - Returns: Whether the result of the command contains the session. False only for a `run` of a running session.
    private mutating func apply(
        _ operation: SessionOperation, to entry: Entry, mark: Int64, at now: DualInstant, _ changed: inout ChangedSessions,
        _ transaction: inout Transaction
    ) throws(QueueError) -> Bool {
        var refusal: QueueError { invalidTransition(entry, operation.participle) }
        let key = entry.key
        switch (operation, entry.state) {
        case (.run(let again), _):
            return try run(entry, again: again, mark: mark, at: now, &changed, &transaction)
        case (.runNext, .waiting):
            mutate(key) { entry, details in
                entry.startPriority = .next
                details.mark = mark
            }
        case (.pause, .running):
            requestStop(key, &transaction) { entry, _ in entry.state = .paused }
        case (.pause, .waiting):
            transaction.result.held.append(entry.id)
            leave(key, to: .held, &changed, &transaction)
        case (.resume, .paused):
            resume(entry, mark: mark, at: now, &changed, &transaction)
        case (.hold, .waiting), (.hold, .running), (.hold, .paused):
            leave(key, to: .held, &changed, &transaction)
        case (.release, .held), (.resume, .held):
            requestStop(key, &transaction) { entry, _ in entry.state = .waiting }
            recordChange(key, &changed)
        case (.yield, .waiting), (.yield, .running), (.yield, .paused):
            restoreDisplaced(of: key, &transaction)
            let until = now.uptime + settings.yieldDelay
            requestStop(key, &transaction) { entry, details in
                entry.state = .waiting
                entry.conditions.insert(.yielded)
                details.yieldedUntil = until
            }
            recordChange(key, &changed)
        case (.cancel(let isDiscarding), .waiting), (.cancel(let isDiscarding), .running), (.cancel(let isDiscarding), .paused),
            (.cancel(let isDiscarding), .held), (.cancel(let isDiscarding), .failed):
            cancel(key, keepsPartial: !isDiscarding, at: now, &changed, &transaction)
        case (.retry, .failed), (.retry, .cancelled):
            try returnToWaiting(entry, isWhole: false, &transaction)
            retryEndpoints(of: entry.account, at: now)
            recordChange(key, &changed)
        case (.update(let update), let state) where state != .completed:
            try apply(update, to: entry, at: now, &transaction)
        default:
            throw refusal
        }
        return true
    }

    /// Adds the session's new state to the changes. If the session's run has not ended yet, the state is reported when the run ends instead.
    private func recordChange(_ key: SessionKey, _ changed: inout ChangedSessions) {
        guard let entry = sessionIndex[key], !entry.conditions.contains(.stopping) else { return }
        changed.add(entry.id, entry.state)
    }

    /// Changes a session, and interrupts its run if the run has not been interrupted yet. If the session releases its slot immediately,
    /// adds the events of its deactivation.
    mutating func requestStop(
        _ key: SessionKey, _ transaction: inout Transaction, _ change: (inout Entry, inout EntryDetails) -> Void
    ) {
        guard let before = sessionIndex[key] else { return }
        let run = sessionIndex.details(key).run
        mutate(key) { entry, details in
            change(&entry, &details)
            if run != 0 { entry.conditions.insert(.stopping) }
        }
        if run != 0, !before.conditions.contains(.stopping) { transaction.actions.append(.interrupt(key, run: run)) }
        if before.holdsSlot, sessionIndex[key]?.holdsSlot == false {
            transaction.events += [.willDeactivate(before.id), .didDeactivate(before.id)]
        }
    }

    /// Moves a session to a state in which it does not start.
    private mutating func leave(
        _ key: SessionKey, to state: SessionState, _ changed: inout ChangedSessions, _ transaction: inout Transaction
    ) {
        restoreDisplaced(of: key, &transaction)
        requestStop(key, &transaction) { entry, details in
            entry.state = state
            Self.clearStartPriority(&entry, &details)
        }
        recordChange(key, &changed)
    }

    static func clearStartPriority(_ entry: inout Entry, _ details: inout EntryDetails) {
        entry.startPriority = .none
        entry.conditions.subtract([.yielded, .displaced])
        details.mark = 0
        details.displacedBy = nil
        details.yieldedUntil = nil
    }

    private mutating func cancel(
        _ key: SessionKey, keepsPartial: Bool, at now: DualInstant, _ changed: inout ChangedSessions, _ transaction: inout Transaction
    ) {
        restoreDisplaced(of: key, &transaction)
        requestStop(key, &transaction) { entry, details in
            entry.state = .cancelled
            Self.clearStartPriority(&entry, &details)
            entry.conditions.subtract([.backoff, .noSpace, .unreadable, .begun])
            details = EntryDetails(
                run: details.run, notBefore: details.notBefore, dependency: details.dependency, deduplicationKey: details.deduplicationKey,
                deadline: details.deadline)
            if keepsPartial { entry.conditions.insert(.keepsPartial) } else { entry.conditions.remove(.keepsPartial) }
        }
        guard let entry = sessionIndex[key], !entry.conditions.contains(.stopping) else { return }
        finishCancelling(entry, at: now, &transaction)
        changed.add(entry.id, .cancelled)
    }

    mutating func finishCancelling(_ entry: Entry, at now: DualInstant, _ transaction: inout Transaction) {
        transaction.writes.append(.endSession(entry.key, nil, now.date))
        if !entry.conditions.contains(.keepsPartial) { transaction.writes.append(.discardPartial(entry.key)) }
        satisfyDependents(of: entry.id, isCompleted: false)
    }

    /// Returns an ended session to the waiting state. If `isWhole` is true, transfers all its files again, including completed files.
    private mutating func returnToWaiting(_ entry: Entry, isWhole: Bool, _ transaction: inout Transaction) throws(QueueError) {
        try checkDuplicate(of: entry, "run again")
        mutate(entry.key) { entry, details in
            entry.state = .waiting
            entry.conditions.remove(.keepsPartial)
            details.completedAt = nil
            details.keptSince = nil
            details.deadlineFrom = nil
            details.isOverdue = false
            // An unfinished run of the session does not know which files to transfer again, so a new run must follow.
            if details.run != 0 { entry.conditions.insert(.hasNewItems) }
        }
        transaction.writes.append(.resetSession(entry.key, isWhole: isWhole))
        transaction.actions.append(.forget(entry.key))
    }

    // MARK: Running now

    private mutating func run(
        _ before: Entry, again: Bool, mark: Int64, at now: DualInstant, _ changed: inout ChangedSessions, _ transaction: inout Transaction
    ) throws(QueueError) -> Bool {
        let key = before.key
        switch before.state {
        case .running:
            retryEndpoints(of: before.account, at: now)
            // Some files may wait while other files are in flight.
            transaction.actions.append(.skipBackoff(key))
            // The run may be about to report a failure after which the session would wait. Record the request, so that the session runs
            // again instead.
            mutate(key) { _, details in details.runAgainMark = mark }
            return false
        case .paused where !before.conditions.contains(.displaced):
            retryEndpoints(of: before.account, at: now)
            resume(before, mark: mark, at: now, &changed, &transaction)
            displace(for: key, at: now, &transaction)
            return true
        case .completed:
            guard again else {
                throw QueueError(.alreadyCompleted, "The session \(before.id) is completed. To transfer it again, run it with `again`.")
            }
            try returnToWaiting(before, isWhole: true, &transaction)
        case .failed, .cancelled: try returnToWaiting(before, isWhole: false, &transaction)
        case .draft: throw invalidTransition(before, "run")
        case .waiting, .held, .paused: break
        }
        putFirst(before, mark: mark, at: now)
        if before.state != .waiting { recordChange(key, &changed) }
        displace(for: key, at: now, &transaction)
        return true
    }

    /// Gives a session precedence over all other sessions. Ends the session's own waits, except waits for space and for the end of an
    /// abandoned run.
    private mutating func putFirst(_ entry: Entry, mark: Int64, at now: DualInstant) {
        retryEndpoints(of: entry.account, at: now)
        mutate(entry.key) { entry, details in
            entry.state = .waiting
            Self.clearStartPriority(&entry, &details)
            entry.startPriority = .now
            details.mark = mark
            entry.conditions.subtract([.backoff, .early, .dependent, .unreadable])
            details.retryAt = nil
            details.notBefore = nil
            details.dependency = nil
        }
    }

    /// Requests another run of a session whose run has ended, because the app called `run` during that run.
    ///
    /// - Parameter mark: The number of the app's call (``EntryDetails/mark``).
    mutating func runAgain(_ entry: Entry, mark: Int64, at now: DualInstant, _ transaction: inout Transaction) {
        putFirst(entry, mark: mark, at: now)
        displace(for: entry.key, at: now, &transaction)
    }

    private mutating func resume(
        _ entry: Entry, mark: Int64, at now: DualInstant, _ changed: inout ChangedSessions, _ transaction: inout Transaction
    ) {
        let key = entry.key
        let isStopping = entry.conditions.contains(.stopping)
        let continuesImmediately =
            flags.mode == .running && ability(of: entry, at: now).isAble && entry.holdsSlot && !sessionIndex.details(key).isOverdue
            && entry.conditions.isDisjoint(with: [.displaced, .runNotEnded]) && (isStopping || mayRunBesideOthers(entry.account))
        if continuesImmediately {
            mutate(key) { entry, _ in entry.state = .running }
            if !isStopping { beginRun(key, isRequested: true, at: now, &transaction) }
        } else {
            requestStop(key, &transaction) { entry, details in
                entry.state = .waiting
                entry.startPriority = .now
                details.mark = mark
            }
            recordChange(key, &changed)
        }
    }
}
