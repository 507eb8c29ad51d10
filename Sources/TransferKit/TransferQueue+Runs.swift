import Logging
import TransferCore

/// What the writer has to be done outside the scheduler: runs of sessions above all.
extension TransferQueue {
    func perform(_ action: Transaction.Action) {
        switch action {
        case .run(let key, let id, let number, _):
            runs[number] = Task { await run(key, id, number) }
        case .interrupt(_, let number):
            runs[number]?.cancel()
        case .hurry(let key):
            histories.hurry(key)
        case .forget(let key):
            histories.forget(key, live[key])
            shown[key] = nil
        case .refresh(let key):
            refresh(key)
        case .pace:
            pace()
        case .distrust(let account):
            proven.remove(account.endpoints)
        case .grow(let key, let items):
            grow(key, items)
        }
    }

    /// Hands the pacer the limits of the queue and of its accounts.
    func pace() {
        pacer.setQueueRate(scheduler.flags.rateLimit)
        for key in pacedAccounts where scheduler.accounts[key] == nil { pacer.forget(account: key) }
        pacedAccounts = Set(scheduler.accounts.keys)
        for (key, entry) in scheduler.accounts { pacer.setRate(entry.account.rateLimit, account: key) }
    }

    /// Hands a running session its changed options.
    func refresh(_ key: SessionKey) {
        guard let run = live[key] else {
            // Its run has begun, but may have read the session before the change.
            if scheduler.roster.live.contains(key) { stale.insert(key) }
            return
        }
        lastRefresh += 1
        let number = lastRefresh
        refreshes[key] = number
        Task { [store] in
            let record = try? await store.sessions([key]).first
            // Of several changes, the last one was read last.
            guard refreshes[key] == number else { return }
            refreshes[key] = nil
            guard let record, live[key] === run else { return }
            run.update(record.options)
            run.update(context: record.status.context)
            pacer.setRate(record.options.rateLimit, session: key)
        }
    }

    /// Tells a running session of items that were added to it.
    func grow(_ key: SessionKey, _ items: ItemFigures) {
        guard let run = live[key] else {
            if scheduler.roster.live.contains(key) { stale.insert(key) }
            return
        }
        run.grow(items)
    }

    /// What a run may use now; nil once its session is gone.
    func endpoints(for key: SessionKey, run: UInt64) -> EndpointAvailability? {
        scheduler.endpoints(for: key, run: run, at: configuration.clock.moment)
    }

    /// The session of a run, as it is stored; if it can't be read, the run ends.
    private func record(of key: SessionKey, _ id: SessionID, _ number: UInt64) async -> SessionRecord? {
        var outcome = RunOutcome.interrupted
        do {
            let (records, unreadable) = try await store.readSessions([key])
            if let found = records.first { return found }
            let reason = unreadable[key] ?? "The session \(id) can't be read."
            if !setAside(key, reason) { outcome = Self.unreadable(reason) }
        } catch is CancellationError {
        } catch {
            configuration.logger.error("The session \(id) can't be read from the store. \(error)")
            outcome = Self.unreadable("\(error)")
        }
        mailbox.post(.report(Report(key: key, run: number, content: .ended(outcome))))
        return nil
    }

    private static func unreadable(_ cause: String) -> RunOutcome {
        .backoff(
            SessionRunner.damageRetryDelay,
            TransferError(.transient, .internalFailure, "The session can't be read from the store.", cause: cause))
    }

    func run(_ key: SessionKey, _ id: SessionID, _ number: UInt64) async {
        defer { runs[number] = nil }
        guard let record = await record(of: key, id, number) else { return }
        var logger = configuration.logger
        logger[metadataKey: "session"] = "\(id)"
        let run = LiveRun(
            id: id, activation: number, endpointBefore: record.status.endpoint, base: record.status.statistics, options: record.options,
            context: record.status.context, shown: shown[key] ?? ShownFigures(), at: configuration.clock.now())
        live[key] = run
        throughput.begin(number, at: configuration.clock.now())
        defer { throughput.end(number, moved: run.moved, at: configuration.clock.now()) }
        guard let account = scheduler.roster[key]?.account else {
            live[key] = nil
            stale.remove(key)
            return mailbox.post(.report(Report(key: key, run: number, content: .ended(.interrupted))))
        }
        var context = RunContext(
            key: key, id: id, run: number, currentEndpoints: { [weak self] in await self?.endpoints(for: key, run: number) },
            transports: transports, credentials: credentials, proven: proven, liveEndpoints: liveEndpoints,
            allowance: { [pacer] in pacer.allowance(upTo: $0, session: key, account: account) },
            store: store, mailbox: mailbox, clock: configuration.clock,
            randomFraction: configuration.randomFraction, logger: logger, live: run, streams: streams,
            chooseEndpoint: { [weak self] endpoints in
                guard let self, let delegate = delivery.delegate else { return nil }
                return await delegate.queue(self, endpointFor: id, among: endpoints)
            })
        context.mostListedNames = configuration.mostListedNames
        context.storageFailed = { [weak self] in self?.tellOfDamage($0) }
        pacer.setRate(record.options.rateLimit, session: key)
        if stale.remove(key) != nil {
            refresh(key)
            if let fresh = try? await store.sessions([key]).first { run.rebase(fresh.status.statistics) }
        }
        let (hub, clock, throughput, histories) = (hub, configuration.clock, throughput, histories)
        await SessionRunner(context: context).run(histories.of(key), remember: { histories.keep($0, of: key, by: run) }) { statistics in
            throughput.sample(number, moved: run.moved, at: clock.now())
            hub.publishUnnumbered(.progress(id, statistics), at: clock.date())
        }
        lastRates.add(bytes: run.moved, in: run.duration(at: clock.now()), account: account)
        guard live[key] === run else { return }
        live[key] = nil
        pacer.forget(session: key)
    }
}
        if scheduler.roster[key]?.state.isEnded == false, !run.isHistoryForgotten { shown[key] = run.shown }
