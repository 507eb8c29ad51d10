import Foundation
import Logging
public import TransferCore

/// A persisted, ordered queue of transfer sessions.
///
/// Everything that changes the queue is an input in one mailbox, which one writer drains: all that waits goes through the pure `Scheduler`,
/// then into the store in one transaction; only then the callers return, the events go out, and transfers start. So each call is durable when
/// it returns, calls that come together share a commit, and events never tell what a crash could take back.
///
/// All methods can be called from any executor. Nothing starts before ``start()``.
public actor TransferQueue {
    /// How long to wait before a store that refused a change is asked again.
    private static let storeRetryDelay = Duration.seconds(1)
    /// The least time between two looks at the disk.
    private static let diskLookInterval = Duration.seconds(1)

    nonisolated let store: QueueStore
    nonisolated let mailbox = Mailbox()
    nonisolated let hub = EventHub()
    nonisolated let delivery = DelegateDelivery()
    nonisolated let throughput = QueueThroughput()
    nonisolated let configuration: QueueConfiguration
    private let transports: [TransportID: any Transport]
    private let credentials: any CredentialProvider
    private let proven = ProvenEndpoints()
    private(set) var scheduler: Scheduler
    private var runs: [UInt64: Task<Void, Never>] = [:]
    private(set) var live: [SessionKey: LiveRun] = [:]
    private(set) var lastRates = RecentRates()
    private var histories: [SessionKey: [Int64: FileHistory]] = [:]
    private var alarm: Task<Void, Never>?
    private var diskLookedAt: Duration?
    private var alarmTime: Duration?
    private var writer: Task<Void, Never>?
    /// Set while the store refuses changes: before then it is not asked again.
    private var refusedUntil: Duration?
    /// Sessions whose options changed while their run was about to begin.
    private var staleOptions: Set<SessionKey> = []
    /// Whether the scheduler is ahead of the store.
    private var isCommitting = false
    private var ending: Task<Void, Never>?
    nonisolated let discards: DiscardOutbox
    nonisolated let pacer: Pacer

    /// Opens the queue in a storage folder, which this process owns until ``shutdown()``. Nothing starts.
    ///
    /// - Parameters:
    ///   - storage: Where the queue is stored.
    ///   - transports: What sessions can be dispatched to, each with an ID of its own.
    ///   - credentials: Reads the secrets that endpoints name; by default from the environment and from files.
    ///   - configuration: What is the same for all sessions.
    ///   - delegate: Told of everything after the opening, what it found left out; see ``setDelegate(_:)``.
    /// - Throws: ``QueueError`` with the code `storageInUse`, `storageTooNew`, `storageUnavailable`, `storageDamaged` or `duplicateTransport`.
    public init(
        storage: Storage, transports: [any Transport], credentials: any CredentialProvider = ReferencedCredentials(),
        configuration: QueueConfiguration = QueueConfiguration(), delegate: (any TransferQueueDelegate)? = nil
    ) async throws {
        var byID: [TransportID: any Transport] = [:]
        for transport in transports {
            guard byID.updateValue(transport, forKey: transport.id) == nil else {
                throw QueueError(.duplicateTransport, "Two transports have the ID \"\(transport.id)\".")
            }
        }
        self.transports = byID
        self.credentials = credentials
        self.configuration = configuration
        store = try await QueueStore.open(storage, clock: configuration.clock, observer: configuration.storeObserver)
        var settings = Scheduler.Settings(
            transports: Set(byID.keys), ordering: configuration.ordering, sessionLimit: configuration.sessionLimit,
            retention: configuration.retention, network: configuration.network, diskFloor: configuration.diskFloor)
        settings.sessionLimitOverride = configuration.sessionLimitOverride
        let news: [QueueEvent]
        do {
            hub.begin(after: try await store.lastRevision())
            let loaded = try await store.load(settings)
            scheduler = loaded.0
            news = hub.number(loaded.news, at: configuration.clock.date())
            if !news.isEmpty { try await store.commit([.events(news, keeping: configuration.changeLogLimit)]) }
            for reason in loaded.quarantined { configuration.logger.error("A part of the store was set aside: \(reason)") }
        } catch {
            await store.close()
            throw error
        }
        pacer = Pacer(clock: configuration.clock)
        discards = DiscardOutbox(
            store: store, transports: byID, credentials: credentials, clock: configuration.clock, logger: configuration.logger,
            randomFraction: configuration.randomFraction, mailbox: mailbox)
        pace()
        setDelegate(delegate)
        hub.publish(news)
        writer = Task { [weak self, mailbox] in
            for await _ in mailbox.rings { await self?.drain() }
        }
    }

    deinit {
        mailbox.close()
        alarm?.cancel()
    }

    // MARK: The one writer

    /// Handles all that waits in the mailbox: decide, store, answer, tell, act.
    private func drain() async {
        let free = await freeSpace()
        let envelopes = mailbox.take()
        guard !envelopes.isEmpty else { return }
        isCommitting = true
        defer {
            isCommitting = false
            setAlarm()
        }
        let now = configuration.clock.moment
        if let refusedUntil, now.uptime < refusedUntil, envelopes.allSatisfy({ $0.isTick || $0.reply == nil }) {
            // Nobody asks for a change: what the store refused has to wait, and whoever only looks is not kept waiting.
            mailbox.putBack(envelopes.filter { !$0.isTick })
            for envelope in envelopes where envelope.isTick { envelope.reply?(.success(Answer())) }
            return
        }
        var transaction = Transaction()
        var answers: [(Mailbox.Envelope, Result<Answer, QueueError>)] = []
        // Nothing but commands is ever refused.
        if let free, let part = try? scheduler.handle(.diskSpace(free), at: now) { transaction.append(part) }
        for envelope in envelopes {
            do {
                let part = try scheduler.handle(envelope.input, at: now)
                transaction.append(part)
                answers.append((envelope, .success(part.answer)))
            } catch {
                answers.append((envelope, .failure(error)))
            }
        }
        transaction.append(scheduler.schedule(at: now))
        let events = hub.number(transaction.events, at: now.date)
        if !events.isEmpty { transaction.writes.append(.events(events, keeping: configuration.changeLogLimit)) }
        do {
            try await store.commit(transaction.writes)
        } catch {
            scheduler.undo()
            storeRefused(answers, error)
            return
        }
        scheduler.commit()
        refusedUntil = nil
        for (envelope, result) in answers { envelope.reply?(result) }
        hub.publish(events)
        for action in transaction.actions { perform(action) }
        discards.setEnabled(scheduler.flags.mode != .stopped)
        if transaction.writes.contains(where: \.mayDiscard) { discards.look() }
    }

    /// What is left on the disk of the store, at most once a second; nil if nothing new is known.
    private func freeSpace() async -> Int64? {
        let now = configuration.clock.now()
        guard configuration.diskFloor > 0, diskLookedAt.map({ now - $0 >= Self.diskLookInterval }) ?? true else { return nil }
        diskLookedAt = now
        return await DiskThread.run { [configuration, folder = store.folder] in configuration.freeSpace(folder) }
    }

    /// Nothing of this batch happened. Those who asked are told; what nobody waits for, such as what runs have reported, is tried again until
    /// the store takes it.
    private func storeRefused(_ answers: [(Mailbox.Envelope, Result<Answer, QueueError>)], _ error: QueueError) {
        diskLookedAt = nil
        configuration.logger.error("\(error.message)")
        hub.publishUnnumbered(.storageFailed(error), at: configuration.clock.date())
        for case (let envelope, .success) in answers { envelope.reply?(.failure(error)) }
        for case (let envelope, .failure(let refusal)) in answers { envelope.reply?(.failure(refusal)) }
        mailbox.putBack(answers.map(\.0).filter { $0.reply == nil && !$0.isTick })
        let isKnown = refusedUntil != nil
        let clock = configuration.clock
        refusedUntil = clock.now() + Self.storeRetryDelay
        guard !isKnown else { return }
        Task { await retryWhileRefused() }
    }

    /// Asks a store that refused a change again and again, until it takes it: what was put back goes with it, and what was due meanwhile.
    private func retryWhileRefused() async {
        while let until = refusedUntil, !mailbox.isClosed {
            try? await configuration.clock.sleep(until - configuration.clock.now())
            if configuration.clock.now() >= until { await mailbox.tick() }
        }
    }

    private func perform(_ action: Transaction.Action) {
        switch action {
        case .run(let key, let id, let number, _):
            runs[number] = Task { await run(key, id, number) }
        case .interrupt(_, let number):
            runs[number]?.cancel()
        case .forget(let key):
            histories[key] = nil
            live[key]?.forgetHistory()
        case .refresh(let key):
            refresh(key)
        case .pace:
            pace()
        }
    }

    /// Hands the pacer the limits of the queue and of its accounts.
    private func pace() {
        pacer.setQueueRate(scheduler.flags.rateLimit)
        for (key, entry) in scheduler.accounts { pacer.setRate(entry.account.rateLimit, account: key) }
    }

    /// Hands a running session its changed options.
    private func refresh(_ key: SessionKey) {
        guard let run = live[key] else {
            staleOptions.insert(key)
            return
        }
        Task { [store, pacer] in
            guard let options = try? await store.sessions([key]).first?.options else { return }
            run.update(options)
            pacer.setRate(options.rateLimit, session: key)
        }
    }

    /// Rings when the next session is due.
    private func setAlarm() {
        var next = scheduler.nextDue(after: configuration.clock.moment)
        // What a store refused is asked again by and by, not at once.
        if refusedUntil != nil { next = nil }
        guard next != alarmTime else { return }
        alarm?.cancel()
        alarmTime = next
        guard let next else { return }
        let clock = configuration.clock
        alarm = Task { [mailbox] in
            guard (try? await clock.sleep(next - clock.now())) != nil else { return }
            mailbox.post(.tick)
        }
    }

    /// What a run may use now; nil once its session is gone.
    private func endpoints(for key: SessionKey, run: UInt64) -> EndpointAvailability? {
        scheduler.endpoints(for: key, run: run, at: configuration.clock.moment)
    }

    /// Takes a session whose row can't be read out of the queue, so that it stops nothing else.
    func setAside(_ id: SessionID, _ reason: String) {
        mailbox.post(.command(.perform(.quarantine(reason), .one(.id(id)))))
    }

    // MARK: Runs

    private func run(_ key: SessionKey, _ id: SessionID, _ number: UInt64) async {
        defer { runs[number] = nil }
        let record: SessionRecord
        do {
            let (records, unreadable) = try await store.readSessions([key])
            guard let found = records.first else {
                if let reason = unreadable[key] { setAside(id, reason) }
                throw CancellationError()
            }
            record = found
        } catch {
            let outcome: RunOutcome =
                error is CancellationError
                ? .interrupted
                : .backoff(
                    .seconds(60),
                    TransferError(.transient, .internalFailure, "The session can't be read from the store.", cause: "\(error)"))
            mailbox.post(.report(Report(key: key, run: number, content: .ended(outcome))))
            return
        }
        var logger = configuration.logger
        logger[metadataKey: "session"] = "\(id)"
        let run = LiveRun(
            id: id, activation: number, endpointBefore: record.status.endpoint, base: record.status.statistics, options: record.options,
            at: configuration.clock.now())
        live[key] = run
        throughput.begin(number, at: configuration.clock.now())
        defer { throughput.end(number, moved: run.moved, at: configuration.clock.now()) }
        guard let account = scheduler.roster[key]?.account else {
            live[key] = nil
            return mailbox.post(.report(Report(key: key, run: number, content: .ended(.interrupted))))
        }
        let context = RunContext(
            key: key, id: id, run: number, currentEndpoints: { [weak self] in await self?.endpoints(for: key, run: number) },
            transports: transports, credentials: credentials, proven: proven,
            allowance: { [pacer] in pacer.allowance(upTo: $0, session: key, account: account) },
            store: store, mailbox: mailbox, clock: configuration.clock,
            randomFraction: configuration.randomFraction, logger: logger, live: run,
            chooseEndpoint: { [weak self] endpoints in
                guard let self, let delegate = delivery.delegate else { return nil }
                return await delegate.queue(self, endpointFor: id, among: endpoints)
            })
        pacer.setRate(record.options.rateLimit, session: key)
        if staleOptions.remove(key) != nil { refresh(key) }
        let (hub, clock, throughput) = (hub, configuration.clock, throughput)
        let remembered = await SessionRunner(context: context).run(histories[key] ?? [:]) { statistics in
            throughput.sample(number, moved: run.moved, at: clock.now())
            hub.publishUnnumbered(.progress(id, statistics), at: clock.date())
        }
        lastRates.add(bytes: run.moved, in: run.duration(at: clock.now()), account: account)
        if !run.isHistoryForgotten { histories[key] = remembered.isEmpty || scheduler.roster[key] == nil ? nil : remembered }
        guard live[key] === run else { return }
        live[key] = nil
        pacer.forget(session: key)
    }

    // MARK: The end

    /// Interrupts what runs, saves where it got to, closes connections and threads, and lets the storage folder go. The queue can't be used
    /// afterwards. Every call returns when all of that is done.
    public func shutdown() async {
        let ending = ending ?? Task { await end() }
        self.ending = ending
        await ending.value
    }

    private func end() async {
        mailbox.post(.command(.stop(.interrupt)))
        mailbox.refuseCommands()
        await settle()
        while let run = runs.values.first {
            run.cancel()
            await run.value
        }
        await settle()
        alarm?.cancel()
        mailbox.close()
        await writer?.value
        await discards.shutdown()
        for transport in transports.values { await transport.shutdown() }
        await store.close()
        hub.finish()
        keepForDelegate()
    }

    /// Returns when all that was put into the mailbox until now is durable, and at a moment when the scheduler is not ahead of the store: what
    /// it says until the next `await` is true.
    func settle() async {
        repeat {
            do {
                // A tick changes nothing by itself; what the store says of it is of no interest.
                try await mailbox.send(.tick)
            } catch  where error.code == .shutDown {
                await writer?.value
                return
            } catch {}
        } while isCommitting
    }
}
