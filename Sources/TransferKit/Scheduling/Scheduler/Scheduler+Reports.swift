import TransferCore

extension Scheduler {
    mutating func handle(_ event: RunEvent, at now: DualInstant, _ transaction: inout Transaction) {
        if case .ended = event.content, let key = flags.abandoned[event.run] { return endAbandoned(event.run, of: key) }
        if flags.removedRuns[event.run] != nil { return handleLate(event, at: now, &transaction) }
        guard let entry = sessionIndex[event.key], sessionIndex.details(event.key).run == event.run else { return }
        let key = event.key
        switch event.content {
        case .connected:
            recordProgress(of: key)
            recordTransfer(of: key)
            guard !entry.conditions.contains(.connected) else { return }
            mutate(key) { entry, _ in entry.conditions.insert(.connected) }
            transaction.events.append(.didStartRunning(entry.id))
        case .file(let position, let fileEvent):
            handle(fileEvent, position: position, of: entry, &transaction)
            recordRunTime(of: event, at: now, &transaction)
        case .expansion(let step):
            transaction.writes.append(.expansion(key, step))
            if step.singleSteps.contains(where: { if case .listed = $0 { true } else { false } }) { recordTransfer(of: key) }
            transaction.events += Self.failures(in: step, of: entry.id)
        case .probe(let endpoint):
            changeHealth(of: [EndpointHealth.Key(endpoint)]) {
                transaction.result.isGranted = $0.probe(endpoint, run: event.run, at: now.uptime)
            }
        case .endpoint(let endpoint):
            let probed = flags.health.endpointsProbed(by: event.run)
            if !probed.isEmpty { changeHealth(of: probed) { $0.recordUse(of: endpoint, run: event.run) } }
            transaction.writes.append(.setEndpoint(key, endpoint.location, endpoint.transport))
        case .endpointChanged(let from, let to):
            transaction.events.append(.endpointChanged(entry.id, from: from, to: to))
        case .endpointWorks(let endpoint):
            recordSuccess(of: endpoint)
        case .endpointFailed(let endpoint, let error):
            changeHealth(of: [EndpointHealth.Key(endpoint)]) { $0.recordFailure(endpoint, error, run: event.run, at: now.uptime) }
        case .hostBusy(let endpoint, let duration):
            // No session can start earlier because of this event, so no line is recalled.
            mutateFlags { $0.health.recordBusy(endpoint, for: duration, at: now.uptime) }
        case .attemptFailed(let error, let delay, let isLastInFlight):
            transaction.writes.append(.attemptFailed(key, error, isRepeated: true))
            if isLastInFlight { stopRunningEvents(entry, &transaction) }
            transaction.events.append(.attemptFailed(entry.id, error, retryAt: now.date + delay))
            if isLastInFlight {
                mutate(key) { entry, _ in entry.conditions.remove(.connected) }
                transaction.events.append(.willStartRunning(entry.id))
            }
        case .waitsSkipped:
            // The run has fulfilled a request that the app made during the run, so if the run fails now, its session waits.
            mutate(key) { _, details in details.runAgainMark = 0 }
        case .times(let times):
            transaction.writes.append(.addTimes(key, times))
        case .ended(let outcome):
            recordSpaceReleased(by: outcome)
            end(entry, run: event.run, outcome, at: now, &transaction)
        case .abandoned(let outcome):
            mutateFlags { $0.abandoned[event.run] = key }
            mutate(key) { entry, _ in entry.conditions.insert(.runNotEnded) }
            end(entry, run: event.run, outcome, at: now, &transaction)
        }
    }

    private mutating func endAbandoned(_ run: UInt64, of key: SessionKey) {
        recordReleasedSpace(.probably)
        mutateFlags { $0.abandoned[run] = nil }
        sessionIndex.recallAllLines()
        mutate(key) { entry, _ in entry.conditions.remove(.runNotEnded) }
    }

    /// Handles an event of a run whose session was removed. Because the session's rows are gone, adds removals of the run's unfinished
    /// uploads and part files to the outbox, the stored list of pending removals (``DiscardQuery``).
    private mutating func handleLate(_ event: RunEvent, at now: DualInstant, _ transaction: inout Transaction) {
        switch event.content {
        case .file(let position, .checkpoint(let checkpoint, let endpoint, _, let identity))
        where identity != nil || endpoint.transport == TransportID.localPartFiles:
            transaction.writes.append(.holdDiscard(event.key, position: position, checkpoint, endpoint))
        case .file(let position, .completed(_, let endpoint)):
            transaction.writes.append(.dropDiscard(event.key, position: position, endpoint))
        case .ended, .abandoned:
            if let account = flags.removedRuns[event.run] { sessionIndex.recallLines(of: account) }
            mutateFlags {
                $0.removedRuns[event.run] = nil
                if case .abandoned = event.content { $0.abandoned[event.run] = event.key }
            }
            if case .ended = event.content { recordReleasedSpace(.probably) }
            endProbes(of: event.run)
            endTime(of: nil, run: event.run, at: now, &transaction)
            transaction.writes.append(.releaseDiscards(event.key))
            finishStoppingIfNoRuns(&transaction)
        default: break
        }
    }

    private mutating func handle(_ event: FileEvent, position: Int64, of entry: Entry, _ transaction: inout Transaction) {
        transaction.writes.append(.file(entry.key, position: position, event))
        switch event {
        // A checkpoint without bytes is saved before a request, so it proves no progress.
        case .checkpoint(let checkpoint, _, _, _):
            guard checkpoint.confirmed > 0 else { return }
            recordProgress(of: entry.key)
            recordTransfer(of: entry.key)
        case .size, .record: break
        case .completed(let receipt, let endpoint):
            recordReleasedSpace(.possibly)
            recordProgress(of: entry.key)
            recordTransfer(of: entry.key)
            // Ends the endpoint's series of failures, even if other runs fail there.
            recordSuccess(of: endpoint)
            transaction.events.append(.itemCompleted(entry.id, position: position, receipt))
        case .failed(let error):
            recordReleasedSpace(.possibly)
            transaction.events.append(.itemFailed(entry.id, position: position, error))
        case .foundFolder:
            mutate(entry.key) { entry, _ in entry.conditions.insert(.hasNewItems) }
            recordTransfer(of: entry.key)
        case .restarted(_, let error): transaction.events.append(.itemRestarted(entry.id, position: position, error))
        }
    }

    /// Records that a run transferred bytes. If the app requested another run during this run, this run has now fulfilled the request.
    private mutating func recordProgress(of key: SessionKey) {
        guard sessionIndex.details(key).runAgainMark != 0 else { return }
        mutate(key) { _, details in details.runAgainMark = 0 }
    }

    /// Records that a session has transferred bytes, has completed a file, or has found or listed a remote folder. From now on, the session's
    /// account is fixed.
    private mutating func recordTransfer(of key: SessionKey) {
        guard sessionIndex[key]?.conditions.contains(.hasTransferred) == false else { return }
        mutate(key) { entry, _ in entry.conditions.insert(.hasTransferred) }
    }

    private static func failures(in step: ExpansionStep, of id: SessionID) -> [QueueEvent.Kind] {
        step.singleSteps.flatMap { step -> [QueueEvent.Kind] in
            let batch: ManifestBatch
            switch step {
            case .add(_, let rows), .read(_, let rows, _): batch = rows
            default: return []
            }
            return batch.entries.compactMap { entry in
                guard entry.state == .failed, let error = entry.error else { return nil }
                return .itemFailed(id, position: entry.position, error)
            }
        }
    }

    // MARK: Time

    /// The minimum time between two writes of a run's duration.
    private static let recordInterval = Duration.seconds(1)

    /// Stores the duration of a run in the same transaction as an event of a file. If the process is killed, the stored duration therefore
    /// misses less than ``recordInterval`` of the time that the stored progress took.
    private mutating func recordRunTime(of event: RunEvent, at now: DualInstant, _ transaction: inout Transaction) {
        guard flags.runTimes.unrecorded(event.run, at: now.uptime) >= Self.recordInterval else { return }
        var times: (session: Int64, queue: Int64) = (0, 0)
        mutateFlags { times = $0.runTimes.record(event.run, at: now.uptime) }
        transaction.writes.append(.ran(event.key, times.session, queue: times.queue))
    }

    private mutating func endTime(of key: SessionKey?, run: UInt64, at now: DualInstant, _ transaction: inout Transaction) {
        var times: (session: Int64, queue: Int64) = (0, 0)
        mutateFlags { times = $0.runTimes.end(run, at: now.uptime) }
        if times.session > 0 || times.queue > 0 { transaction.writes.append(.ran(key, times.session, queue: times.queue)) }
    }

    // MARK: The end of a run

    /// Records how likely it is that an ended run has released space. A run that ended for lack of space does not count. Otherwise, two
    /// sessions could bring each other's checks forward for ever.
    private mutating func recordSpaceReleased(by outcome: RunOutcome) {
        switch outcome {
        case .interrupted, .finished(failure: .some, _): recordReleasedSpace(.probably)
        case .finished(failure: nil, _), .backoff, .endpointsUnavailable, .accountBlocked: recordReleasedSpace(.possibly)
        case .noSpace: break
        }
    }

    func stopRunningEvents(_ entry: Entry, _ transaction: inout Transaction) {
        if entry.conditions.contains(.connected) { transaction.events.append(.willStopRunning(entry.id)) }
        transaction.events.append(.didStopRunning(entry.id))
    }

    private mutating func end(
        _ before: Entry, run: UInt64, _ outcome: RunOutcome, at now: DualInstant, _ transaction: inout Transaction
    ) {
        let key = before.key
        let wasStopping = before.conditions.contains(.stopping)
        let mark = before.state == .running ? sessionIndex.details(key).runAgainMark : 0
        stopRunningEvents(before, &transaction)
        endProbes(of: run)
        endTime(of: key, run: run, at: now, &transaction)
        mutate(key) { entry, details in
            details.run = 0
            details.runAgainMark = 0
            entry.conditions.subtract([.stopping, .connected, .hasNewItems])
        }
        let probeDelay = wasStopping ? nil : delayForOtherProbes(before, outcome, at: now)
        if case .accountBlocked(let error, let usedAccount) = outcome { block(before.account, error, usedAccount, run: run, &transaction) }

        switch outcome {
        case .finished(let failure, let ignoresNewFiles)
        where before.state != .cancelled && (!before.conditions.contains(.hasNewItems) || (ignoresNewFiles && !wasStopping)):
            finish(key, failure, at: now, &transaction)
            return
        case .backoff(_, let error), .endpointsUnavailable(let error), .accountBlocked(let error, _), .noSpace(let error):
            transaction.writes.append(.attemptFailed(key, error, isRepeated: false))
            if case .backoff(let delay, _) = outcome, !wasStopping {
                var retryAt = now.date + max(delay, probeDelay ?? .zero)
                // The session's endpoints may be unavailable for longer than the delay of the file.
                if case .unavailable(let until?) = ability(of: before, at: now) { retryAt = max(retryAt, now.date + (until - now.uptime)) }
                transaction.events.append(.attemptFailed(before.id, error, retryAt: mark == 0 ? retryAt : now.date))
            }
        case .finished, .interrupted: break
        }

        if wasStopping {
            endInterrupted(key, at: now, &transaction)
        } else if case .finished = outcome {
            // Items were added, found or reset during the run.
            continueActivation(key, isRequested: false, at: now, &transaction)
        } else {
            wait(key, outcome, probeDelay: probeDelay, at: now, &transaction)
        }
        if mark != 0, let entry = sessionIndex[key], entry.state == .waiting { runAgain(entry, mark: mark, at: now, &transaction) }
        finishStoppingIfNoRuns(&transaction)
    }

    /// The maximum number of other sessions of the account that may probe an endpoint between two probes by the same session.
    private static let maximumOthersBefore = 29

    /// How long a session with unavailable endpoints waits while other sessions of the account probe the endpoints; nil for no wait. The
    /// server may fail only for this session. In that case, the session's probes must not keep other sessions from using the server.
    private mutating func delayForOtherProbes(_ entry: Entry, _ outcome: RunOutcome, at now: DualInstant) -> Duration? {
        guard case .backoff(_, let error) = outcome, RecoveryDecision.isOutage(error),
            case .unavailable(let until?) = ability(of: entry, at: now)
        else { return nil }
        wake(at: now)
        let others = min(sessionIndex.eligible(of: entry.account), Self.maximumOthersBefore)
        return until - now.uptime + EndpointHealth.outagePause * others
    }

    /// Handles the end of an interrupted run. The session is now in the state that was requested with the interruption.
    private mutating func endInterrupted(_ key: SessionKey, at now: DualInstant, _ transaction: inout Transaction) {
        guard let entry = sessionIndex[key] else { return }
        if isOverdue(entry) { return failOverdue(entry, wasActive: true, at: now, &transaction) }
        // The session was resumed before its run ended.
        if entry.state == .running { return continueActivation(key, isRequested: true, at: now, &transaction) }
        if !entry.holdsSlot { transaction.events += [.willDeactivate(entry.id), .didDeactivate(entry.id)] }
        guard entry.state == .cancelled else { return transaction.events.append(.changed([entry.id], entry.state)) }
        finishCancelling(entry, at: now, &transaction)
        transaction.events.append(.cancelled([entry.id]))
    }

    /// Begins another run in the same activation. If the session can't run now, it waits.
    private mutating func continueActivation(
        _ key: SessionKey, isRequested: Bool, at now: DualInstant, _ transaction: inout Transaction
    ) {
        guard let entry = sessionIndex[key] else { return }
        let isQueueStopping = flags.mode == .stopping || flags.mode == .stopped
        guard !isQueueStopping, !entry.conditions.contains(.runNotEnded), ability(of: entry, at: now).isAble else {
            return wait(key, .interrupted, at: now, &transaction)
        }
        beginRun(key, isRequested: isRequested, at: now, &transaction)
    }

    /// Ends a session: as failed if an error is given, otherwise as completed.
    ///
    /// - Parameters:
    ///   - wasActive: Whether the session used a slot.
    ///   - keepsStart: Whether a retry still waits for the session's start time and dependency.
    mutating func finish(
        _ key: SessionKey, _ failure: TransferError?, wasActive: Bool = true, keepsStart: Bool = false, at now: DualInstant,
        _ transaction: inout Transaction
    ) {
        restoreDisplaced(of: key, &transaction)
        let steadyDate = steadyDate(at: now)
        mutate(key) { entry, details in
            entry.state = failure == nil ? .completed : .failed
            Self.clearStartPriority(&entry, &details)
            var kept: Entry.Conditions = [.needsCheapNetwork, .hasTransferred, .runNotEnded]
            if keepsStart { kept.formUnion([.early, .dependent]) }
            entry.conditions.formIntersection(kept)
            details = EntryDetails(
                notBefore: keepsStart ? details.notBefore : nil, dependency: keepsStart ? details.dependency : nil,
                deduplicationKey: details.deduplicationKey, completedAt: failure == nil ? steadyDate : nil,
                keptSince: failure == nil ? steadyDate : nil, deadline: details.deadline)
        }
        guard let entry = sessionIndex[key] else { return }
        transaction.writes.append(.endSession(key, failure, now.date))
        satisfyDependents(of: entry.id, isCompleted: failure == nil)
        if wasActive { transaction.events += [.willDeactivate(entry.id), .didDeactivate(entry.id)] }
        transaction.events.append(failure.map { .failed(entry.id, $0) } ?? .completed(entry.id))
        transaction.actions.append(.forget(key))
        finishStoppingIfNoRuns(&transaction)
    }

    /// Makes a session release its slot and wait, after a run that did not finish the session.
    private mutating func wait(
        _ key: SessionKey, _ outcome: RunOutcome, probeDelay: Duration? = nil, at now: DualInstant, _ transaction: inout Transaction
    ) {
        let endpointDelay = delayForOtherEndpoints(key, outcome, at: now)
        mutate(key) { entry, details in
            entry.state = .waiting
            switch outcome {
            case .backoff(let delay, let error):
                details.retryAt = now + max(delay, probeDelay ?? .zero)
                details.ownRetryAt = now + delay
                entry.conditions.insert(.backoff)
                if error.code == .storageDamaged { entry.conditions.insert(.unreadable) }
            case .interrupted: entry.startPriority = .interrupted
            case .endpointsUnavailable:
                guard let endpointDelay else { break }
                details.retryAt = now + endpointDelay
                details.ownRetryAt = now
                entry.conditions.insert(.backoff)
            case .accountBlocked, .noSpace, .finished: break
            }
        }
        if case .noSpace(let shortage) = outcome { waitForSpace(key, shortage, at: now) }
        guard let entry = sessionIndex[key] else { return }
        if entry.startPriority != .interrupted { restoreDisplaced(of: key, &transaction) }
        transaction.events += [.willDeactivate(entry.id), .didDeactivate(entry.id), .changed([entry.id], .waiting)]
    }

    /// The time for which a session waits if its run could use none of the available endpoints of the account; nil in all other cases.
    ///
    /// For example, if only some endpoints can list a folder, the session waits for one of these endpoints. Without this wait, the session would
    /// start again immediately.
    private func delayForOtherEndpoints(_ key: SessionKey, _ outcome: RunOutcome, at now: DualInstant) -> Duration? {
        guard case .endpointsUnavailable = outcome, let entry = sessionIndex[key], ability(of: entry, at: now).isAble else { return nil }
        let times = (accounts[entry.account]?.account.endpoints ?? []).compactMap { endpoint -> Duration? in
            guard settings.transports.contains(endpoint.transport),
                case .unavailable(let until) = flags.health.availability(of: endpoint, run: nil, at: now.uptime)
            else { return nil }
            return until - now.uptime
        }
        return max(times.min() ?? .zero, RetryPolicy.maximumInPlaceDelay)
    }

    private mutating func block(
        _ key: AccountKey, _ error: TransferError, _ usedAccount: Account, run: UInt64, _ transaction: inout Transaction
    ) {
        // The run may have used an older definition of the account, or the app may have unblocked the account after the run began. In both cases,
        // the account stays unblocked, and the session retries.
        guard var account = accounts[key], account.block == nil, run > account.lastRunWhenUnblocked,
            account.account.isSameIdentity(as: usedAccount)
        else { return }
        account.block = AccountBlock(error: error)
        account.hasRequestedCredentials = true
        setAccount(key, account)
        transaction.actions.append(.forgetAuthentication(usedAccount))
        transaction.writes.append(.blockAccount(key, account.block))
        transaction.events.append(.accountBlocked(account: account.account.name, error))
        if error.failureClass == .credentials {
            transaction.events.append(.needsCredentials(account: account.account.name, error))
        }
    }
}
