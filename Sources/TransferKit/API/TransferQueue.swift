import Foundation
import Locking
import Logging
public import TransferCore

/// A persistent, ordered queue of transfer sessions. <doc:QueueSemantics> defines its terms.
///
/// The queue keeps its state in a database in the storage folder. Each change is durable when its call returns, and no event reports a change
/// that a crash could undo. Calls and running sessions post inputs to a mailbox. A single task, the *writer*, passes all pending inputs to the
/// `Scheduler`, which decides their effects but does not perform them. The writer stores these effects in one transaction, so concurrent calls
/// share a commit. Only then does the writer return results, publish events, and start transfers.
///
/// All methods can be called from any executor. No session starts before ``start()``.
public actor TransferQueue: ControllableQueue {
    private static let storeRetryDelay = Duration.seconds(1)
    private static let diskCheckInterval = Duration.seconds(1)

    package nonisolated let store: QueueStore
    nonisolated let mailbox = Mailbox()
    nonisolated let hub = EventHub()
    nonisolated let delivery = DelegateDelivery()
    nonisolated let throughput = QueueThroughput()
    package nonisolated let clientReads = ClientReads(limit: ClientReads.limit)
    nonisolated let configuration: QueueConfiguration
    let transports: [TransportID: any Transport]
    let credentials: any CredentialProvider
    private(set) var scheduler: Scheduler
    var (runs, revoked): ([UInt64: ActiveRun], Set<SessionID>) = ([:], [])
    /// Sent when a run has ended, or when the queue has stopped waiting for the end of a run.
    nonisolated let runsEnded = ChangeSignal()
    package var live: [SessionKey: LiveRun] = [:]
    var (lastRates, meters) = (RecentRates(), QueueMeters())
    let histories = RunHistories()
    /// For each unfinished session, the last statistics that its previous run published.
    var shown: [SessionKey: ShownFigures] = [:]
    private var (alarm, alarmTime): (Task<Void, Never>?, Duration?)
    private var diskCheckedAt: Duration?
    /// The uptime at which the writer last stored the current time; nil before the first time.
    private var clockStoredAt: Duration?
    private static let clockInterval = Duration.seconds(60)
    private var writer: Task<Void, Never>?
    /// The uptime at which the writer retries a refused change; nil while the database accepts changes.
    private var refusedUntil: Duration?
    var refusal: StorageRefusal?
    /// Sessions that changed after their run had begun, but before ``live`` contained the run. The run may have read the session before the change.
    var changedBeforeRun: Set<SessionKey> = []
    /// For each session whose options are being read from the database, the number of the latest read. The results of earlier reads are ignored.
    var latestRefresh: [SessionKey: UInt64] = [:]
    var lastRefresh: UInt64 = 0
    /// Whether the scheduler contains changes that are not stored yet.
    private var isCommitting = false
    private var quarantineTimes: [Duration] = []
    /// The unreadable sessions that this queue has quarantined since it was opened.
    private var unreadableSessions: Set<SessionKey> = []
    /// The uptime of the last event from ``reportDamage(_:)``.
    nonisolated let damageReportedAt = Locked<Duration?>(nil)
    private var shutdownTask: Task<Void, Never>?
    nonisolated let discards: DiscardOutbox
    package nonisolated let deferredDeletion: DeferredDeletion
    package nonisolated let pacer: Pacer
    nonisolated let streams = StreamRegistry()
    nonisolated let endpointStates = EndpointStates()
    nonisolated let routes = RouteGap()
    /// Sent after each transaction, unless the run of a removed session is in progress. No event reports the end of such a run.
    nonisolated let removedRunsEnded = ChangeSignal()

    /// Opens the queue in a storage folder, which this process owns until ``shutdown()``. No session starts before ``start()``.
    ///
    /// - Parameters:
    ///   - storage: The location of the queue's state.
    ///   - transports: The transports that sessions can use, each with a unique ID. The queue creates its own instance of each
    ///     (``/TransferCore/Transport/makeInstance()``), so you can pass the same values to other queues.
    ///   - credentials: Reads the secrets that endpoints refer to; by default from the environment and from files.
    ///   - configuration: Settings that apply to all sessions.
    ///   - delegate: Receives the events, including events during the opening of the queue, such as a quarantined session; see ``setDelegate(_:)``.
    /// - Throws: ``QueueError`` with the code `storageInUse`, `storageTooNew`, `storageUnavailable`, `storageDamaged` or
    ///   `duplicateTransport`; `impossibleOrder` if the ordering is ``QueueOrdering/strict`` and a session depends on a later session.
    public init(
        storage: Storage, transports: [any Transport], credentials: any CredentialProvider = ReferencedCredentials(),
        configuration: QueueConfiguration = QueueConfiguration(), delegate: (any TransferQueueDelegate)? = nil
    ) async throws {
        var byID: [TransportID: any Transport] = [:]
        for transport in transports {
            guard transport.id != TransportID.localPartFiles else {
                throw QueueError(.duplicateTransport, "The transport ID \"\(transport.id)\" is reserved. Choose another ID.")
            }
            guard byID.updateValue(transport, forKey: transport.id) == nil else {
                throw QueueError(.duplicateTransport, "Two transports have the ID \"\(transport.id)\". Each transport needs a unique ID.")
            }
        }
        self.credentials = credentials
        var configuration = configuration
        configuration.logger[metadataKey: "queue"] = "\(storage.name)"
        self.configuration = configuration
        store = try await QueueStore.open(
            storage, clock: configuration.clock, observer: configuration.storeObserver, rowsPerSweep: configuration.rowsPerSweep)
        var settings = Scheduler.Settings(
            transports: Set(byID.keys), ordering: configuration.ordering, maxConcurrentSessions: configuration.maxConcurrentSessions,
            retention: configuration.retention, network: configuration.network,
            diskFloor: await store.diskFloor(configuration.diskFloor))
        settings.maxConcurrentSessionsOverride = configuration.maxConcurrentSessionsOverride
        settings.diskFloorOverride = configuration.diskFloorOverride.map { max(0, $0) }
        settings.openedAt = configuration.clock.moment
        let openingEvents: [QueueEvent]
        let hasDeferredWork: Bool
        do {
            hub.begin(after: try await store.lastRevision())
            let loaded = try await store.load(settings)
            scheduler = loaded.0
            openingEvents = hub.number(loaded.events, at: configuration.clock.date())
            if !openingEvents.isEmpty { try await store.commit([.events(openingEvents, keeping: configuration.changeLogLimit)]) }
            hasDeferredWork = try await store.hasDeferredWork()
            streams.add(try await store.pendingStreams(), in: store.spool, clock: configuration.clock)
            for reason in loaded.quarantined { configuration.logger.error("Quarantined a part of the queue's database: \(reason)") }
        } catch {
            await store.abandon()
            throw error
        }
        self.transports = byID.mapValues { $0.makeInstance() }
        pacer = Pacer(clock: configuration.clock)
        discards = DiscardOutbox(
            store: store, transports: self.transports, credentials: credentials, clock: configuration.clock, logger: configuration.logger,
            randomFraction: configuration.randomFraction, mailbox: mailbox)
        deferredDeletion = DeferredDeletion(
            store: store, clock: configuration.clock, logger: configuration.logger, discardsMayBeDue: { [discards] in discards.wake() },
            report: { [hub, clock = configuration.clock] in hub.publishUnnumbered(.storeTrimmed($0), at: clock.date()) })
        pace(nil)
        for key in scheduler.accounts.keys { pace(key) }
        setDelegate(delegate)
        hub.publish(openingEvents)
        configuration.logger.info("Opened the queue.", metadata: ["sessions": "\(scheduler.sessionIndex.count)"])
        log(openingEvents)
        if hasDeferredWork { deferredDeletion.wake() }
        writer = Task { [weak self, mailbox] in
            for await _ in mailbox.wakeUps { await self?.drain() }
        }
    }

    deinit {
        mailbox.close()
        alarm?.cancel()
    }

    // MARK: The writer

    /// Handles all pending inputs: stores the resulting changes, returns the results, publishes the events and performs the actions.
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
            // No call waits for a change. The refused changes stay pending, and queries return without waiting for them.
            mailbox.putBack(envelopes.filter { !$0.isTick })
            interruptRunsDuringRefusal(at: now.uptime)
            for envelope in envelopes where envelope.isTick { envelope.reply?(.success(InputResult())) }
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
                case .quarantine(let key)?:
                    if await quarantine(key, error.error, at: now) { continue }
                case nil: break
                }
                return storeRefused(round.results, error.error)
            }
            refusedUntil = nil
            refusal = nil
            finish(round.transaction, events) { for (envelope, result) in round.results { envelope.reply?(result) } }
            return
        }
    }

    /// Stores changes together with the events that report them and, at most once a minute, the current time. If the database refuses only the
    /// events or the time, stores the changes without them. A reader of the change log then finds a gap in place of the events.
    private func commit(_ writes: [StoreWrite], _ events: [QueueEvent]) async throws(StoreRefusal) {
        var log: [StoreWrite] = events.isEmpty ? [] : [.events(events, keeping: configuration.changeLogLimit)]
        let now = configuration.clock.moment
        let isClockDue = !(writes + log).isEmpty && clockStoredAt.map { now.uptime - $0 >= Self.clockInterval } ?? true
        if isClockDue { log.append(.clock(seen: now.date, steady: scheduler.steadyDate(at: now))) }
        while true {
            do throws(StoreRefusal) {
                startMaintenance(try await store.commitIdentifyingFailure(writes + log))
                if isClockDue { clockStoredAt = now.uptime }
                return
            } catch {
                guard let culprit = error.culprit, culprit.index >= writes.count else { throw error }
                configuration.logger.error("Cannot write the change log or the clock. \(error.error.message)")
                log.remove(at: culprit.index - writes.count)
            }
        }
    }

    private func startMaintenance(_ pending: PendingMaintenance) {
        if pending.hasDeferredWork { deferredDeletion.wake() }
        if pending.hasDueDiscards { discards.wake() }
    }

    private func finish(_ transaction: Transaction, _ events: [QueueEvent], _ reply: () -> Void = {}) {
        scheduler.commit()
        reply()
        hub.publish(events)
        log(events)
        if scheduler.flags.removedRuns.isEmpty { removedRunsEnded.send() }
        for action in transaction.actions { perform(action) }
        // Called after the actions, because the actions protect the streams of quarantined sessions. Otherwise, the `removed` events would delete
        // the files of these streams.
        streams.handle(transaction.events)
        discards.setEnabled(scheduler.flags.mode != .stopped)
    }

    /// The free space on the storage folder's disk, in bytes; nil if it was read in the last second or is unknown, or if no minimum is set.
    private func freeSpace() async -> Int64? {
        let now = configuration.clock.now()
        guard scheduler.diskFloor > 0, diskCheckedAt.map({ now - $0 >= Self.diskCheckInterval }) ?? true else { return nil }
        diskCheckedAt = now
        return await BlockingIO.run(.storage) { [configuration, folder = store.folder] in configuration.freeSpace(folder) }
    }

    /// The maximum number of quarantines per `quarantineInterval`. If more are needed, the whole database counts as damaged.
    private static let maximumQuarantines = 64
    private static let quarantineInterval = Duration.seconds(600)

    /// Quarantines a session whose rows the database refuses to change, so that other sessions can continue.
    ///
    /// - Returns: Whether the session has left the queue.
    private func quarantine(_ key: SessionKey, _ error: QueueError, at now: DualInstant) async -> Bool {
        guard unreadableSessions.contains(key) || mayQuarantine(at: now), let id = scheduler.sessionIndex[key]?.id else { return false }
        let reason = "Quarantined the session \(id), because the queue's database refuses to change it. \(error.message)"
        guard let transaction = try? scheduler.handle(.command(.quarantine(id, reason)), at: now) else { return false }
        if !unreadableSessions.contains(key) { quarantineTimes.append(now.uptime) }
        let events = hub.number(transaction.events, at: now.date)
        do throws(StoreRefusal) {
            do throws(StoreRefusal) {
                try await commit(transaction.writes, events)
            } catch {
                guard error.culprit != nil else { throw error }
                // The database also refuses to move the session's rows to the quarantine. The rows stay where they are, and the queue finds them
                // again when it is next opened.
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

    /// Quarantines a session whose rows can't be read, so that other sessions can continue. After too many quarantines, the whole database
    /// counts as damaged: the rows stay in place, and an event reports the damage.
    ///
    /// - Returns: Whether the session will be quarantined, or is no longer in the queue.
    @discardableResult
    func quarantine(_ key: SessionKey, _ reason: String) -> Bool {
        guard let id = scheduler.sessionIndex[key]?.id, !unreadableSessions.contains(key) else { return true }
        let now = configuration.clock.moment
        guard mayQuarantine(at: now) else {
            reportDamage(QueueError(.storageDamaged, "The queue's database in \(store.folder) is damaged in many places. \(reason)"))
            return false
        }
        unreadableSessions.insert(key)
        quarantineTimes.append(now.uptime)
        configuration.logger.error("Quarantined the session \(id). \(reason)")
        mailbox.post(.command(.quarantine(id, reason)))
        return true
    }

    private func mayQuarantine(at now: DualInstant) -> Bool {
        quarantineTimes.removeAll { now.uptime - $0 > Self.quarantineInterval }
        return quarantineTimes.count < Self.maximumQuarantines
    }

    /// Handles inputs whose changes the database refused. Calls fail. Inputs without a caller, such as run events, return to the mailbox and are
    /// retried.
    private func storeRefused(_ results: [(envelope: Mailbox.Envelope, result: Result<InputResult, QueueError>)], _ error: QueueError) {
        diskCheckedAt = nil
        // The queue retries every second, so an event for each failure would be too frequent. `reportDamage` limits the frequency.
        if refusal?.problem == error.message { reportDamage(error) } else { report(storageFailed: error) }
        var unstored: [Mailbox.Envelope] = []
        for (envelope, result) in results {
            envelope.reply?(result.flatMap { _ in .failure(error) })
            if envelope.reply == nil, !envelope.isTick, case .success = result { unstored.append(envelope) }
        }
        mailbox.putBack(unstored)
        let isRetrying = refusedUntil != nil
        let clock = configuration.clock
        let now = clock.now()
        refusedUntil = now + Self.storeRetryDelay
        if refusal == nil { refusal = StorageRefusal(since: now, problem: error.message) }
        interruptRunsDuringRefusal(at: now)
        guard !isRetrying else { return }
        Task { await retryWhileRefused() }
    }

    private func retryWhileRefused() async {
        while let until = refusedUntil, !mailbox.isClosed {
            try? await configuration.clock.sleep(until - configuration.clock.now())
            if configuration.clock.now() >= until { await mailbox.tick() }
        }
    }

    private func setAlarm() {
        var next = scheduler.nextDue(after: configuration.clock.moment)
        // While the database refuses changes, `retryWhileRefused` sends the ticks.
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

    /// Makes the scheduler remember changes of tags until ``endReadingTags()``. A caller that reads tags from the database would otherwise miss
    /// changes that are not stored yet.
    func beginReadingTags() async {
        await waitForEarlierInputs()
        scheduler.beginReadingTags()
    }

    func endReadingTags() {
        scheduler.endReadingTags()
    }

    // MARK: Shutdown

    /// Shuts the queue down. The queue can't be used afterwards. Concurrent calls of this method return when the shutdown is complete.
    ///
    /// The queue interrupts running sessions, saves their checkpoints, removes part files that are no longer needed, closes connections, ends
    /// threads, and releases the storage folder. The queue waits at most 30 s for a run that does not end or a transport that does not shut down, for
    /// example because a network share does not respond.
    public func shutdown() async {
        let task = shutdownTask ?? Task { await end() }
        shutdownTask = task
        await task.value
    }

    private func end() async {
        mailbox.post(.command(.stop(.interrupt)))
        mailbox.refuseCommands()
        await waitForEarlierInputs()
        for number in runs.keys { interrupt(number) }
        await waitForRuns()
        await waitForEarlierInputs()
        alarm?.cancel()
        await discards.shutdown()
        mailbox.close()
        await writer?.value
        alarm?.cancel()
        await deferredDeletion.shutdown()
        await streams.endAll()
        await shutDownTransports()
        await store.close()
        configuration.logger.info("Shut down the queue.")
        hub.finish()
        keepAliveForDelegate()
    }

    /// Waits until the writer has handled all inputs in the mailbox, and the scheduler contains no unstored change. Does not wait for inputs
    /// that the database refused. The scheduler's state is valid until the next `await`.
    func waitForEarlierInputs() async {
        repeat {
            do {
                // This tick carries no change, so an error of the database does not matter.
                try await mailbox.send(.tick)
            } catch  where error.code == .shutDown {
                await writer?.value
                return
            } catch {}
        } while isCommitting
    }
}
