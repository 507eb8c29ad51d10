import Foundation
import Locking
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

    package nonisolated let store: QueueStore
    nonisolated let mailbox = Mailbox()
    nonisolated let hub = EventHub()
    nonisolated let delivery = DelegateDelivery()
    nonisolated let throughput = QueueThroughput()
    package nonisolated let clientReads = ClientReads(limit: ClientReads.limit)
    nonisolated let configuration: QueueConfiguration
    let transports: [TransportID: any Transport]
    let credentials: any CredentialProvider
    let proven = ProvenEndpoints()
    private(set) var scheduler: Scheduler
    var runs: [UInt64: RunningSession] = [:]
    /// Sent when a run has ended or was abandoned.
    nonisolated let runsEnded = ChangeSignal()
    package var live: [SessionKey: LiveRun] = [:]
    var lastRates = RecentRates()
    let histories = RunHistories()
    /// What runs showed of sessions that are not finished.
    var shown: [SessionKey: ShownFigures] = [:]
    private var alarm: Task<Void, Never>?
    private var diskLookedAt: Duration?
    /// When the clock was last stored.
    private var clockStoredAt: Duration?
    private static let clockInterval = Duration.seconds(60)
    private var alarmTime: Duration?
    private var writer: Task<Void, Never>?
    /// Set while the store refuses changes: before then it is not asked again.
    private var refusedUntil: Duration?
    var refusal: StorageRefusal?
    /// Sessions that changed while their run was about to begin.
    var stale: Set<SessionKey> = []
    /// The last reading of changed options that is under way, by session.
    var refreshes: [SessionKey: UInt64] = [:]
    var lastRefresh: UInt64 = 0
    /// Whether the scheduler is ahead of the store.
    private var isCommitting = false
    /// When sessions had to be set aside lately, as uptime.
    private var setAsideTimes: [Duration] = []
    /// Sessions that could not be read, and are counted among those.
    private var unreadableSessions: Set<SessionKey> = []
    /// When everybody was told of damage last, as uptime.
    nonisolated let damageToldAt = Locked<Duration?>(nil)
    private var ending: Task<Void, Never>?
    nonisolated let discards: DiscardOutbox
    package nonisolated let sweeper: RowSweeper
    package nonisolated let pacer: Pacer
    nonisolated let streams = StreamRegistry()
    nonisolated let liveEndpoints = LiveEndpoints()
    /// Sent when no run of a removed session is left, of which no event tells.
    nonisolated let leftoversEnded = ChangeSignal()

    /// Opens the queue in a storage folder, which this process owns until ``shutdown()``. Nothing starts.
    ///
    /// - Parameters:
    ///   - storage: Where the queue is stored.
    ///   - transports: The transports that sessions can use, each with a unique ID. The queue makes an instance of each for itself
    ///     (``TransferCore/Transport/makeInstance()``); the same values can be given to other queues.
    ///   - credentials: Reads the secrets that endpoints name; by default from the environment and from files.
    ///   - configuration: What is the same for all sessions.
    ///   - delegate: Told of everything after the opening, what it found left out; see ``setDelegate(_:)``.
    /// - Throws: ``QueueError`` with the code `storageInUse`, `storageTooNew`, `storageUnavailable`, `storageDamaged` or `duplicateTransport`;
    ///   `impossibleOrder` if the queue is to be strict, and a session in it waits for one behind it.
    public init(
        storage: Storage, transports: [any Transport], credentials: any CredentialProvider = ReferencedCredentials(),
        configuration: QueueConfiguration = QueueConfiguration(), delegate: (any TransferQueueDelegate)? = nil
    ) async throws {
        var byID: [TransportID: any Transport] = [:]
        for transport in transports {
            guard transport.id != LocalParts.transportID else {
                throw QueueError(.duplicateTransport, "The ID \"\(transport.id)\" is the queue's own; give the transport another one.")
            }
            guard byID.updateValue(transport, forKey: transport.id) == nil else {
                throw QueueError(.duplicateTransport, "Two transports have the ID \"\(transport.id)\".")
            }
        }
        self.credentials = credentials
        self.configuration = configuration
        store = try await QueueStore.open(storage, clock: configuration.clock, observer: configuration.storeObserver)
        var settings = Scheduler.Settings(
            transports: Set(byID.keys), ordering: configuration.ordering, sessionLimit: configuration.sessionLimit,
            retention: configuration.retention, network: configuration.network, diskFloor: configuration.diskFloor)
        settings.sessionLimitOverride = configuration.sessionLimitOverride
        settings.openedAt = configuration.clock.moment
        let news: [QueueEvent]
        let hasRowsToSweep: Bool
        do {
            hub.begin(after: try await store.lastRevision())
            let loaded = try await store.load(settings)
            scheduler = loaded.0
            news = hub.number(loaded.news, at: configuration.clock.date())
            if !news.isEmpty { try await store.commit([.events(news, keeping: configuration.changeLogLimit)]) }
            hasRowsToSweep = try await store.hasRowsToSweep()
            streams.add(try await store.leftStreams(), in: store.spool, clock: configuration.clock)
            for reason in loaded.quarantined { configuration.logger.error("A part of the store was set aside: \(reason)") }
        } catch {
            await store.abandon()
            throw error
        }
        self.transports = byID.mapValues { $0.makeInstance() }
        pacer = Pacer(clock: configuration.clock)
        discards = DiscardOutbox(
            store: store, transports: self.transports, credentials: credentials, clock: configuration.clock, logger: configuration.logger,
            randomFraction: configuration.randomFraction, mailbox: mailbox)
        sweeper = RowSweeper(
            store: store, clock: configuration.clock, logger: configuration.logger, discardsMayBeDue: { [discards] in discards.look() },
            tell: { [hub, clock = configuration.clock] in hub.publishUnnumbered(.storeTrimmed($0), at: clock.date()) })
        pace(nil)
        for key in scheduler.accounts.keys { pace(key) }
        setDelegate(delegate)
        hub.publish(news)
        if hasRowsToSweep { sweeper.look() }
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
            interruptRunsOfARefusingStore(at: now.uptime)
            for envelope in envelopes where envelope.isTick { envelope.reply?(.success(Answer())) }
            return
        }
        var refused: [Int: QueueError] = [:]
        while true {
            let round = WriterRound(envelopes, free: free, refused: refused, &scheduler, at: now)
            let events = hub.number(round.transaction.events, at: now.date)
            do {
                try await commit(round.transaction.writes, events)
            } catch {
                scheduler.undo()
                switch error.culprit.flatMap({ round.remedy(for: $0, scheduler) }) {
                case .refuse(let index)?:
                    configuration.logger.error("\(error.error.message)")
                    refused[index] = error.error
                    continue
                case .setAside(let key)?:
                    if await setAside(key, error.error, at: now) { continue }
                case nil: break
                }
                return storeRefused(round.answers, error.error)
            }
            refusedUntil = nil
            refusal = nil
            finish(round.transaction, events) { for (envelope, result) in round.answers { envelope.reply?(result) } }
            return
        }
    }

    /// Stores changes with the events that tell of them. A change log that can't be written must not keep anything else from being stored: its
    /// readers find a gap.
    private func commit(_ writes: [StoreWrite], _ events: [QueueEvent]) async throws(StoreRefusal) {
        var log: [StoreWrite] = events.isEmpty ? [] : [.events(events, keeping: configuration.changeLogLimit)]
        let now = configuration.clock.moment
        let isClockDue = !(writes + log).isEmpty && clockStoredAt.map { now.uptime - $0 >= Self.clockInterval } ?? true
        if isClockDue { log.append(.clock(seen: now.date, steady: scheduler.steadyDate(at: now))) }
        while true {
            do throws(StoreRefusal) {
                look(after: try await store.commitOrBlame(writes + log))
                if isClockDue { clockStoredAt = now.uptime }
                return
            } catch {
                guard let culprit = error.culprit, culprit.index >= writes.count else { throw error }
                configuration.logger.error("The change log or the clock can't be written. \(error.error.message)")
                log.remove(at: culprit.index - writes.count)
            }
        }
    }

    private func look(after pending: PendingMaintenance) {
        if pending.hasRowsToSweep { sweeper.look() }
        if pending.hasDueDiscards { discards.look() }
    }

    /// What was decided is durable: those who asked are told, then everybody else, and then it is done.
    private func finish(_ transaction: Transaction, _ events: [QueueEvent], _ answer: () -> Void = {}) {
        scheduler.commit()
        answer()
        hub.publish(events)
        if scheduler.flags.ending.isEmpty { leftoversEnded.send() }
        streams.note(transaction.events)
        for action in transaction.actions { perform(action) }
        discards.setEnabled(scheduler.flags.mode != .stopped)
    }

    /// What is left on the disk of the store, at most once a second; nil if nothing new is known.
    private func freeSpace() async -> Int64? {
        let now = configuration.clock.now()
        guard configuration.diskFloor > 0, diskLookedAt.map({ now - $0 >= Self.diskLookInterval }) ?? true else { return nil }
        diskLookedAt = now
        return await DiskThread.run(.storage) { [configuration, folder = store.folder] in configuration.freeSpace(folder) }
    }

    /// More than these in so short a time: it is not their rows that are at fault.
    private static let mostSetAside = 64
    private static let setAsideInterval = Duration.seconds(600)

    /// Takes a session out of the queue whose rows the store will not change, so that it holds nothing else up.
    ///
    /// - Returns: Whether that is done.
    private func setAside(_ key: SessionKey, _ error: QueueError, at now: Moment) async -> Bool {
        guard unreadableSessions.contains(key) || mayStillSetAside(at: now), let id = scheduler.roster[key]?.id else { return false }
        let reason = "The session \(id) was set aside, as the store refuses to change it. \(error.message)"
        guard let transaction = try? scheduler.handle(.command(.perform(.quarantine(reason), .one(.id(id)))), at: now) else { return false }
        if !unreadableSessions.contains(key) { setAsideTimes.append(now.uptime) }
        let events = hub.number(transaction.events, at: now.date)
        do throws(StoreRefusal) {
            do throws(StoreRefusal) {
                try await commit(transaction.writes, events)
            } catch {
                guard error.culprit != nil else { throw error }
                // Not even that: its rows stay where they are, and the next opening meets them again.
                try await commit(transaction.writes.filter { $0.session != key }, events)
            }
        } catch {
            scheduler.undo()
            return false
        }
        configuration.logger.error("\(reason)")
        finish(transaction, events)
        return true
    }

    /// Takes a session out of the queue whose rows can't be read, so that it stops nothing else. After too many of them, it is the store that
    /// counts as damaged: they stay where they are, and everybody is told.
    ///
    /// - Returns: Whether it is taken out, or gone.
    @discardableResult
    func setAside(_ key: SessionKey, _ reason: String) -> Bool {
        guard let id = scheduler.roster[key]?.id, !unreadableSessions.contains(key) else { return true }
        let now = configuration.clock.moment
        guard mayStillSetAside(at: now) else {
            tellOfDamage(QueueError(.storageDamaged, "The store in \(store.folder) is damaged in many places. \(reason)"))
            return false
        }
        unreadableSessions.insert(key)
        setAsideTimes.append(now.uptime)
        configuration.logger.error("The session \(id) was quarantined. \(reason)")
        mailbox.post(.command(.perform(.quarantine(reason), .one(.id(id)))))
        return true
    }

    private func mayStillSetAside(at now: Moment) -> Bool {
        setAsideTimes.removeAll { now.uptime - $0 > Self.setAsideInterval }
        return setAsideTimes.count < Self.mostSetAside
    }

    /// Nothing of this batch happened. Those who asked are told; what nobody waits for, such as what runs have reported, is tried again until
    /// the store takes it.
    private func storeRefused(_ answers: [(envelope: Mailbox.Envelope, result: Result<Answer, QueueError>)], _ error: QueueError) {
        diskLookedAt = nil
        tell(storageFailed: error)
        var again: [Mailbox.Envelope] = []
        for (envelope, result) in answers {
            envelope.reply?(result.flatMap { _ in .failure(error) })
            if envelope.reply == nil, !envelope.isTick, case .success = result { again.append(envelope) }
        }
        mailbox.putBack(again)
        let isKnown = refusedUntil != nil
        let clock = configuration.clock
        let now = clock.now()
        refusedUntil = now + Self.storeRetryDelay
        if refusal == nil { refusal = StorageRefusal(since: now, problem: error.message) }
        interruptRunsOfARefusingStore(at: now)
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

    // MARK: Tags

    /// From now on, changes of tags are kept in mind that the store may not know of when it is read.
    func beginReadingTags() async {
        await settle()
        scheduler.beginReadingTags()
    }

    func endReadingTags() {
        scheduler.endReadingTags()
    }

    // MARK: The end

    /// Interrupts running sessions, saves their checkpoints, removes part files of completed and failed downloads, closes connections and
    /// threads, and releases the storage folder. The queue can't be used afterwards. Every call returns when all of that is done.
    ///
    /// A run or a transport that does not end within 30 s is abandoned, for example because a network share does not answer.
    public func shutdown() async {
        let ending = ending ?? Task { await end() }
        self.ending = ending
        await ending.value
    }

    private func end() async {
        mailbox.post(.command(.stop(.interrupt)))
        mailbox.refuseCommands()
        await settle()
        for number in runs.keys { interrupt(number) }
        await waitForRuns()
        await settle()
        alarm?.cancel()
        await discards.shutdown()
        mailbox.close()
        await writer?.value
        alarm?.cancel()
        await sweeper.shutdown()
        await streams.endAll()
        await shutDownTransports()
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
