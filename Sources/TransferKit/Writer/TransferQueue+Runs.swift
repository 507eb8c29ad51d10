import Logging
import TransferCore

/// Performs the scheduler's actions: begins, updates and ends runs of sessions, and shuts transports down.
extension TransferQueue {
    func perform(_ action: Transaction.Action) {
        switch action {
        case .run(let key, let id, let number, _):
            runs[number] = ActiveRun(key: key, id: id, task: Task { await run(key, id, number) })
            if revoked.contains(id) { interrupt(number) }
        case .interrupt(_, let number):
            interrupt(number)
        case .skipBackoff(let key):
            histories.skipBackoff(key)
            live[key]?.backoffsSkipped.send()
        case .forget(let key):
            histories.forget(key, live[key])
            shown[key] = nil
        case .keepStreams(let sessions):
            streams.end(
                sessions, TransferError(.sourceLost, .cancelled, "The session that sends this stream was quarantined."), keepsFile: true)
        case .refresh(let key):
            refresh(key)
        case .pace(let account):
            pace(account)
        case .forgetAuthentication(let account):
            endpointStates.forgetAuthentication(of: account.endpoints)
        case .grow(let key, let items):
            notifyRun(of: items, in: key)
        }
    }

    /// Passes the rate limit of an account to the pacer; if `account` is nil, passes the rate limit of the queue.
    func pace(_ account: AccountKey?) {
        guard let account else { return pacer.setQueueRate(scheduler.flags.rateLimit, timetable: scheduler.flags.timetable) }
        if let entry = scheduler.accounts[account] {
            pacer.setRate(entry.account.rateLimit, timetable: entry.account.timetable, account: account)
        } else {
            pacer.forget(account: account)
        }
    }

    /// Reads the changed options of a session from the database, and passes them to the session's run.
    func refresh(_ key: SessionKey) {
        guard let run = live[key] else {
            // The run has begun, but may have read the session before the change.
            if scheduler.sessionIndex.live.contains(key) { changedBeforeRun.insert(key) }
            return
        }
        lastRefresh += 1
        let number = lastRefresh
        latestRefresh[key] = number
        Task { [store] in
            let record = try? await store.sessions([key]).first
            // If the options changed again during this read, the result may be outdated. Only the result of the last read is used.
            guard latestRefresh[key] == number else { return }
            latestRefresh[key] = nil
            guard let record, live[key] === run else { return }
            run.update(record.options)
            run.update(context: record.status.context)
            hub.set(record.status.context, of: record.status.id)
            pacer.setRate(record.options.rateLimit, session: key)
        }
    }

    func notifyRun(of items: ItemFigures, in key: SessionKey) {
        guard let run = live[key] else {
            if scheduler.sessionIndex.live.contains(key) { changedBeforeRun.insert(key) }
            return
        }
        run.grow(items)
    }

    /// The endpoints that a run may use now; nil once its session is removed.
    func endpoints(for key: SessionKey, run: UInt64) -> EndpointAvailability? {
        scheduler.endpoints(for: key, run: run, at: configuration.clock.moment)
    }

    /// Returns the stored session of a run. If the session can't be read, ends the run and returns nil.
    private func record(of key: SessionKey, _ id: SessionID, _ number: UInt64) async -> SessionRecord? {
        var outcome = RunOutcome.interrupted
        do {
            // Completes a reset that is in progress, because the run begins with the statistics after the reset. If this fails, the run
            // reports the error.
            try? await store.finishMarked(key)
            let (records, unreadable) = try await store.readSessions([key])
            if let found = records.first { return found }
            let reason = unreadable[key] ?? "Cannot read the session \(id)."
            if !quarantine(key, reason) { outcome = Self.unreadable(reason) }
        } catch is CancellationError {
        } catch {
            configuration.logger.error("Cannot read the session \(id) from the queue's database. \(error)")
            outcome = Self.unreadable("\(error)")
        }
        mailbox.post(.report(RunEvent(key: key, run: number, content: .ended(outcome))))
        return nil
    }

    private static func unreadable(_ cause: String) -> RunOutcome {
        .backoff(
            SessionRunner.damageRetryDelay,
            TransferError(.transient, .storageDamaged, "Cannot read the session from the queue's database.", cause: cause))
    }

    // MARK: Ending runs

    /// The longest time that a run may take to end after it was interrupted or its outcome was decided. Also the longest time that a transport may
    /// take to shut down.
    private static let endLimit = Duration.seconds(30)

    /// Interrupts a run, and abandons the run if it does not end within ``endLimit``.
    func interrupt(_ number: UInt64) {
        runs[number]?.task.cancel()
        limitEnd(of: number)
    }

    /// Abandons an ending run if it does not end within ``endLimit``. Only the first call for a run has an effect.
    private func limitEnd(of number: UInt64) {
        guard let run = runs[number], run.timer == nil else { return }
        let clock = configuration.clock
        runs[number]?.timer = Task { [weak self] in
            if (try? await clock.sleep(Self.endLimit)) != nil { await self?.abandon(number) }
        }
    }

    /// Interrupts all runs if the database has refused changes for too long, or if too many inputs wait to be stored. Otherwise, too much progress
    /// would be lost if the process ended.
    func interruptRunsDuringRefusal(at uptime: Duration) {
        guard let refusal, refusal.isTooLong(at: uptime, pendingInputs: mailbox.count) else { return }
        for (number, run) in runs {
            self.refusal?.interrupted.insert(run.key)
            interrupt(number)
        }
    }

    /// Gives up waiting for an ending run that hangs, so that its slot becomes free. The run's later reports have no effect,
    /// except the report of its end.
    private func abandon(_ number: UInt64) {
        guard let run = runs.removeValue(forKey: number) else { return }
        configuration.logger.warning(
            "The run of a session has not ended within \(Self.endLimit), so the queue abandons it. A disk, a network share or a transport does not respond.",
            metadata: ["session": "\(run.id)"])
        var outcome = RunOutcome.interrupted
        if let live = live[run.key], live.activation == number {
            outcome = live.outcome ?? outcome
            live.abandon()
            throughput.end(number, moved: live.moved, at: configuration.clock.now())
            // The run's attempts end here. As at the end of any run, the bytes that they confirmed are included in
            // ``ShownFigures/confirmed``.
            for file in live.activeFiles { live.end(file, confirmed: file.shownConfirmed) }
            let times = live.takeTimes()
            if times.total > 0 { mailbox.post(.report(RunEvent(key: run.key, run: number, content: .times(times)))) }
            forget(live, of: run.key)
        }
        mailbox.post(.report(RunEvent(key: run.key, run: number, content: .abandoned(outcome))))
        runsEnded.send()
    }

    /// Forgets a run that has ended or was abandoned. Keeps the last shown byte counts of an unfinished session.
    private func forget(_ run: LiveRun, of key: SessionKey) {
        live[key] = nil
        if scheduler.sessionIndex[key]?.state.isEnded == false, !run.isHistoryForgotten { shown[key] = run.shown }
        pacer.forget(session: key)
    }

    private func end(_ number: UInt64) {
        runs.removeValue(forKey: number)?.timer?.cancel()
        runsEnded.send()
    }

    /// Returns when every run has ended or was abandoned.
    func waitForRuns() async {
        while true {
            let version = runsEnded.version
            guard !runs.isEmpty else { return }
            try? await runsEnded.wait(after: version)
        }
    }

    /// Shuts down all transports concurrently. Abandons transports that do not shut down within ``endLimit``.
    func shutDownTransports() async {
        await withTaskGroup(of: Void.self) { group in
            for transport in transports.values {
                group.addTask { [clock = configuration.clock, logger = configuration.logger] in
                    let message = "The transport \"\(transport.id)\" did not shut down within \(Self.endLimit)."
                    do {
                        try await TimeLimit.run(for: Self.endLimit, clock, message) { await transport.shutdown() }
                    } catch {
                        logger.error("\(message)")
                    }
                }
            }
        }
    }

    func run(_ key: SessionKey, _ id: SessionID, _ number: UInt64) async {
        defer { end(number) }
        guard let record = await record(of: key, id, number) else { return }
        // The run may have been abandoned, or its session revoked (``revoke(_:)``), while the session was read. Such a run must not begin.
        guard runs[number] != nil, !revoked.contains(id) else {
            return mailbox.post(.report(RunEvent(key: key, run: number, content: .ended(.interrupted))))
        }
        var logger = configuration.logger
        logger[metadataKey: "session"] = "\(id)"
        let labels = RunLabels(record.status.direction, transport: record.status.transport)
        meters.begin(id, labels)
        let run = LiveRun(
            id: id, activation: number, endpointBefore: record.status.endpoint, base: record.status.statistics, options: record.options,
            context: record.status.context, shown: shown[key] ?? ShownFigures(), labels: labels, at: configuration.clock.now())
        live[key] = run
        hub.set(record.status.context, of: id)
        throughput.begin(number, at: configuration.clock.now())
        defer { throughput.end(number, moved: run.moved, at: configuration.clock.now()) }
        guard let account = scheduler.sessionIndex[key]?.account else {
            live[key] = nil
            changedBeforeRun.remove(key)
            hub.set(nil, of: id)
            return mailbox.post(.report(RunEvent(key: key, run: number, content: .ended(.interrupted))))
        }
        logger[metadataKey: "account"] = (scheduler.accounts[account]?.account.name).map { "\($0)" }
        var context = RunContext(
            key: key, id: id, run: number, currentEndpoints: { [weak self] in await self?.endpoints(for: key, run: number) },
            transports: transports, credentials: credentials, endpoints: endpointStates,
            allowance: { [pacer] in pacer.allowance(upTo: $0, session: key, account: account) },
            store: store, mailbox: mailbox, clock: configuration.clock,
            randomFraction: configuration.randomFraction, logger: logger, live: run, streams: streams,
            chooseEndpoint: { [weak self] endpoints in
                guard let self, let delegate = delivery.delegate else { return nil }
                return await delegate.queue(self, endpointFor: id, among: endpoints)
            })
        context.routes = routes
        context.progressObserver = configuration.progressObserver
        context.localReadObserver = configuration.localReadObserver
        context.maximumListedNames = configuration.maximumListedNames
        context.limitEnd = { [weak self] in await self?.limitEnd(of: number) }
        context.storageFailed = { [weak self] in self?.reportDamage($0) }
        let (hub, clock, throughput, histories) = (hub, configuration.clock, throughput, histories)
        context.publish = { kind in
            guard !run.isAbandoned else { return }
            hub.publishUnnumbered(kind, at: clock.date())
        }
        pacer.setRate(record.options.rateLimit, session: key)
        if changedBeforeRun.remove(key) != nil {
            refresh(key)
            if let fresh = try? await store.sessions([key]).first { run.replaceStatistics(fresh.status.statistics) }
        }
        beginTotalProgress()
        await SessionRunner(context: context).run(histories.of(key), remember: { histories.keep($0, of: key, by: run) }) { statistics in
            guard !run.isAbandoned else { return }
            throughput.sample(number, moved: run.moved, at: clock.now())
            hub.publishUnnumbered(.progress(id, statistics), at: clock.date())
        }
        let duration = run.duration(at: clock.now())
        meters.recordRun(of: scheduler.accounts[account]?.account.name, labels, duration)
        guard live[key] === run else { return }
        // Omit an abandoned run from the rates, because its duration includes the time for which the run hung.
        lastRates.add(bytes: run.moved, in: duration, account: account)
        forget(run, of: key)
    }
}

/// A period in which the database refuses changes.
struct StorageRefusal: Sendable {
    /// The number of waiting inputs, mostly run events, at which runs are interrupted. The inputs are later stored in one transaction.
    static let maximumPendingEvents = 1_000
    private static let longest = Duration.seconds(10)

    /// The uptime at which the database first refused changes.
    let since: Duration
    let problem: String
    /// Sessions whose runs were interrupted because of the refusal.
    var interrupted: Set<SessionKey> = []

    func isTooLong(at uptime: Duration, pendingInputs: Int) -> Bool {
        uptime - since >= Self.longest || pendingInputs >= Self.maximumPendingEvents
    }
}

/// A run that has neither ended nor been abandoned.
struct ActiveRun: Sendable {
    let key: SessionKey
    let id: SessionID
    let task: Task<Void, Never>
    /// The task that abandons the run if the run does not end within 30 s; nil if the run is not ending.
    var timer: Task<Void, Never>?
}
