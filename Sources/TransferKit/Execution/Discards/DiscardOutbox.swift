import Foundation
import Locking
import Logging
import TransferCore

/// Removes abandoned content of sessions from servers, and the part files of downloads from this machine. Removals use no session slots.
/// Pending removals survive restarts of the process.
///
/// Each host with due removals has its own worker, which requests one removal at a time; at most 64 hosts have a worker. A host that hangs
/// or asks to back off therefore does not delay other hosts. While the queue is stopped, only part files are removed. Content that a server
/// refuses to remove stays there.
final class DiscardOutbox: Sendable {
    private struct State: Sendable {
        var isEnabled = false
        var isClosed = false
        /// Whether removals may be due.
        var mayHaveDue = true
        /// Whether the removals that earlier processes postponed must be retried now.
        var mustRetryPostponed = false
        /// The removals that this process postponed.
        var postponed: Set<Int64> = []
        var worker: Task<Void, Never>?
        var alarm: Task<Void, Never>?
        var waiters: [CheckedContinuation<Void, Never>] = []

        var hasWork: Bool { mayHaveDue || mustRetryPostponed }
    }

    static let page = 64
    /// The maximum number of hosts with a worker at the same time.
    private static let maximumHosts = 64
    /// How long a server may take for one removal, or this machine for the part files of one download folder.
    static let timeout = Duration.seconds(120)
    /// How long a hanging disk may delay a shutdown.
    private static let shutdownLimit = Duration.seconds(10)
    /// The longest pause between two reads of the hosts with due removals.
    private static let longestPause = Duration.seconds(30)
    private static let firstDelay = Duration.seconds(10)
    private static let longestDelay = Duration.seconds(3_600)

    let store: QueueStore
    private let transports: [TransportID: any Transport]
    let parts: LocalParts
    private let credentials: any CredentialProvider
    let clock: EngineClock
    private let logger: Logger
    private let randomFraction: @Sendable () -> Double
    private let mailbox: Mailbox
    /// The time at which the process opened the queue, as a date and as an uptime.
    private let opening: DualInstant
    private let changes = ChangeSignal()
    private let pauses = PausedHosts()
    private let state = Locked(State())

    init(
        store: QueueStore, transports: [TransportID: any Transport], credentials: any CredentialProvider, clock: EngineClock,
        logger: Logger,
        randomFraction: @escaping @Sendable () -> Double, mailbox: Mailbox
    ) {
        self.store = store
        self.transports = transports
        parts = LocalParts(sources: store.sources)
        self.credentials = credentials
        self.clock = clock
        self.logger = logger
        self.randomFraction = randomFraction
        self.mailbox = mailbox
        opening = clock.moment
    }

    func setEnabled(_ isEnabled: Bool) {
        state.withLock { state in
            if isEnabled, !state.isEnabled { state.mayHaveDue = true }
            state.isEnabled = isEnabled
        }
        begin()
    }

    /// Checks for removals that are due. Call it after removals may have been added.
    func wake() {
        state.withLock { $0.mayHaveDue = true }
        begin()
    }

    /// Makes one attempt at each removal that an earlier process postponed. Returns when these attempts have ended and no removal is due,
    /// or after the time limit.
    ///
    /// Skips removals that this process has already tried and postponed. Also skips hosts that took too long in this process, or that asked
    /// this process or an earlier process to back off.
    func finish(within limit: Duration) async {
        state.withLock { state in
            state.mustRetryPostponed = true
            state.mayHaveDue = true
        }
        begin()
        try? await TimeLimit.run(for: limit, clock, "Some remote content has not been removed yet.") { await self.waitUntilQuiet() }
    }

    /// Waits until no removal is due, the store has failed, or the outbox is shut down. A stopped queue waits only for removals of part files.
    func waitUntilQuiet() async {
        await withCheckedContinuation { continuation in
            let isQuiet = state.withLock { state in
                if state.worker == nil { return true }
                state.waiters.append(continuation)
                return false
            }
            if isQuiet { continuation.resume() }
        }
    }

    /// Stops the removals at servers. Still removes due part files, for up to 10 s, because the queue may never be opened again. All other
    /// removals stay in the store.
    func shutdown() async {
        let worker = state.withLock { state in
            state.isClosed = true
            state.alarm?.cancel()
            state.worker?.cancel()
            return state.worker
        }
        await worker?.value
        try? await TimeLimit.run(for: Self.shutdownLimit, clock, "Some part files have not been removed yet.") { await self.removeParts() }
        let waiters = state.withLock { state in
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    private func begin() {
        state.withLock { state in
            guard state.hasWork, !state.isClosed, state.worker == nil else { return }
            state.worker = Task { await self.work() }
        }
        changes.send()
    }

    private func work() async {
        await pauses.learn(from: store, at: clock.moment)
        var isStored = await processHosts()
        // Read here and not earlier, because ``finish(within:)`` may set `mustRetryPostponed` while the hosts are processed.
        let mustRetryPostponed = state.withLock { state in
            defer { state.mustRetryPostponed = false }
            return state.mustRetryPostponed
        }
        if isStored, mustRetryPostponed { isStored = await retryPostponed() }
        guard isStored else { return end(clock.date() + Self.firstDelay) }
        end((try? await store.dueDiscards(at: clock.date(), limit: 0, isLocalOnly: !isEnabled))?.next)
    }

    /// An event of a child task of ``processHosts()``.
    private enum Report {
        /// The worker of a host has ended. The Boolean is false if the store could not be read, or did not store a result.
        case host(String, Bool)
        /// Removals may have been added.
        case change
    }

    /// Runs a worker for each host with due removals, until no removal is due.
    ///
    /// - Returns: Whether the store could be read and all results were stored. If not, the removals are requested again later.
    private func processHosts() async -> Bool {
        await withTaskGroup(of: Report.self) { group in
            var active: Set<String> = []
            // Hosts with due removals for which no worker could be started, because all workers were busy or the host's worker was still
            // running.
            var missed: Set<String> = []
            var isStored = true
            var listens = false
            // With many due removals, reading the hosts is slow. The pause after a read is 20 times as long as the read, so reading takes
            // up only a small part of the time.
            var pause = Duration.zero
            while isStored, !Task.isCancelled {
                let version = changes.version
                let mayHaveDue = state.withLock { state in
                    defer { state.mayHaveDue = false }
                    return state.mayHaveDue
                }
                if mayHaveDue {
                    let start = clock.now()
                    guard let hosts = await dueHosts() else {
                        isStored = false
                        break
                    }
                    pause = min((clock.now() - start) * 20, Self.longestPause)
                    for (host, storedEndpoints) in hosts {
                        guard active.count < Self.maximumHosts, active.insert(host).inserted else {
                            missed.insert(host)
                            continue
                        }
                        group.addTask { .host(host, await self.process(host, storedEndpoints)) }
                    }
                }
                guard !active.isEmpty else { break }
                if !listens {
                    listens = true
                    group.addTask { [changes, clock, pause] in
                        try? await changes.wait(after: version)
                        try? await clock.sleep(pause)
                        return .change
                    }
                }
                switch await group.next() {
                case .host(let host, let hasStored)?:
                    active.remove(host)
                    isStored = hasStored
                    if missed.remove(host) != nil || missed.contains(where: { !active.contains($0) }) {
                        state.withLock { $0.mayHaveDue = true }
                    }
                case .change?: listens = false
                case nil: break
                }
            }
            group.cancelAll()
            return isStored
        }
    }

    /// The endpoints with due removals, in their stored form, grouped by host; nil if the store can't be read.
    private func dueHosts() async -> [String: [String]]? {
        guard let storedEndpoints = try? await store.endpointsOfDueDiscards(at: clock.date(), isLocalOnly: !isEnabled) else { return nil }
        return Dictionary(grouping: storedEndpoints) { stored in
            // Removals with an unreadable endpoint share one worker, which deletes them from the outbox.
            guard let endpoint: Endpoint = try? StoreCoding.decode(from: stored) else { return "" }
            return endpoint.transport == TransportID.localParts ? TransportID.localParts.rawValue : endpoint.pausedName
        }
    }

    /// Performs the due removals of one host. If the host is paused, postpones the remaining removals.
    ///
    /// - Returns: Whether all results are stored.
    private func process(_ host: String, _ storedEndpoints: [String]) async -> Bool {
        while !Task.isCancelled {
            guard
                let found = try? await store.dueDiscards(
                    at: clock.date(), limit: Self.page, isLocalOnly: !isEnabled, among: storedEndpoints)
            else { return false }
            guard !found.due.isEmpty || !found.unreadable.isEmpty else { break }
            // Unreadable removals can't be performed, so their content stays where it is.
            for key in found.unreadable {
                guard await store(DiscardResult(key: key, nextAttempt: nil)) else { return false }
            }
            if let pause = pause(of: host) {
                guard await postpone(storedEndpoints, pause) else { return false }
                continue
            }
            guard await discardParts(found.due) else { return false }
            // If the queue is stopped during this loop, the remaining removals stay due.
            for item in found.due where !item.isPart && isEnabled && !Task.isCancelled && pause(of: host) == nil {
                guard await discard(item) else { return false }
            }
        }
        return true
    }

    private func pause(of host: String) -> PausedHosts.Pause? { pauses.pause(of: host, at: clock.now()) }

    /// Postpones all due removals of a host until its pause ends, and deletes expired removals from the outbox.
    ///
    /// - Returns: Whether the changes are stored.
    private func postpone(_ storedEndpoints: [String], _ pause: PausedHosts.Pause) async -> Bool {
        let now = clock.moment
        let until = now.date + (pause.end - now.uptime)
        let postponement = DiscardPostponement(
            storedEndpoints: storedEndpoints, dueAt: now.date, expiredAt: expiryDate, until: until,
            backOffUntil: pause.wasRequested ? until : nil)
        return (try? await mailbox.send(.postponed(postponement))) != nil
    }

    /// Removals with a deadline at or before this date have expired: the current date, or the date of the queue's opening plus the uptime since
    /// then, whichever is earlier. Therefore, a clock that is set ahead or corrected while the queue is open lets no removal expire early.
    private var expiryDate: Date { min(clock.date(), opening.date + (clock.now() - opening.uptime)) }

    /// Retries the removals that earlier processes postponed.
    ///
    /// - Returns: Whether the results are stored.
    private func retryPostponed() async -> Bool {
        var last: Int64?
        while isEnabled, !Task.isCancelled, let found = try? await store.laterDiscards(at: clock.date(), after: last, limit: Self.page) {
            guard let end = found.last?.key else { break }
            last = end
            let postponed = state.withLock { $0.postponed }
            let hosts = Dictionary(grouping: found.filter { !$0.isPart && !postponed.contains($0.key) }, by: \.endpoint.pausedName)
            let isStored = await withTaskGroup(of: Bool.self) { group in
                for (host, items) in hosts { group.addTask { await self.tryAll(items, at: host) } }
                return await group.reduce(true) { $0 && $1 }
            }
            guard isStored else { return false }
        }
        return true
    }

    private func tryAll(_ items: [PendingDiscard], at host: String) async -> Bool {
        for item in items where isEnabled && !Task.isCancelled && pause(of: host) == nil {
            guard await discard(item) else { return false }
        }
        return true
    }

    private var isEnabled: Bool { state.withLock { $0.isEnabled } }

    /// Ends the worker. Resumes the waiters, or begins again if removals may have been added.
    ///
    /// - Parameter next: The date at which the outbox wakes up again; nil for no date.
    private func end(_ next: Date?) {
        let (waiters, again): ([CheckedContinuation<Void, Never>], Bool) = state.withLock { state in
            state.worker = nil
            state.alarm?.cancel()
            if let next, !state.isClosed {
                let delay = Duration.seconds(max(1, next.timeIntervalSince(clock.date())))
                state.alarm = Task { [clock, weak self] in
                    if (try? await clock.sleep(delay)) != nil { self?.wake() }
                }
            }
            // If removals may have been added since the work ended, the waiters also wait for the new removals.
            guard !state.hasWork || state.isClosed else { return ([], true) }
            defer { state.waiters = [] }
            return (state.waiters, false)
        }
        for waiter in waiters { waiter.resume() }
        if again { begin() }
    }

    /// Requests a removal at a server.
    ///
    /// - Returns: Whether the result is stored.
    private func discard(_ item: PendingDiscard) async -> Bool {
        guard let transport = transports[item.endpoint.transport] as? any PartialDiscarding else {
            // If the transport is not registered in this process, a later process may register the transport, so the removal is retried
            // until its deadline. If the transport is registered but can't remove content, the removal ends now.
            let isMissing = transports[item.endpoint.transport] == nil
            return await storeNextAttempt(of: item, at: isMissing && item.giveUpAt > expiryDate ? clock.date() + delay(item) : nil)
        }
        let result = await Self.result {
            let message = "\(item.endpoint.location) took longer than \(Self.timeout) to remove content of a session."
            try await TimeLimit.run(for: Self.timeout, clock, message) { [credentials] in
                try await transport.discard(item.checkpoint, at: item.endpoint, credentials: credentials)
            }
        }
        return await storeResult(result, of: item)
    }

    static func result(_ body: () async throws -> Void) async -> Result<Void, any Error> {
        do {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }

    /// Stores the result of a removal.
    ///
    /// - Returns: Whether the result is stored.
    func storeResult(_ result: Result<Void, any Error>, of item: PendingDiscard) async -> Bool {
        do {
            try result.get()
            return await storeNextAttempt(of: item, at: nil)
        } catch let error as TransferError where error.failureClass == .unsupported {
            // Logs no warning if the server reports that it does not support removals.
            if error.code != .unsupported {
                logger.warning("Content of a session stays at \(item.endpoint.location), because it can't be removed: \(error)")
            }
            return await storeNextAttempt(of: item, at: nil)
        } catch is CancellationError where Task.isCancelled {
            return true
        } catch {
            logger.info("Cannot remove content of a session at \(item.endpoint.location) yet: \(error)")
            let error = error as? TransferError
            let now = clock.moment
            let delay = delay(item, retryAfter: error?.retryAfter)
            let requestedPause = error?.retryAfter.map { min($0, RetryPolicy.longestRetryAfter) }
            // A part file has no host to pause. ``LocalParts`` refuses further removals in a folder until the earlier removal has returned.
            if !item.isPart, error?.code == .timedOut || requestedPause != nil {
                let length = requestedPause.map { max($0, Self.firstDelay) } ?? delay
                pauses.pause(item.endpoint, PausedHosts.Pause(end: now.uptime + length, wasRequested: requestedPause != nil))
            }
            return await storeNextAttempt(
                of: item, at: item.giveUpAt <= expiryDate ? nil : now.date + delay, backOffUntil: requestedPause.map { now.date + $0 })
        }
    }

    private func delay(_ item: PendingDiscard, retryAfter: Duration? = nil) -> Duration {
        RetryPolicy(base: Self.firstDelay, maximumDelay: Self.longestDelay)
            .delay(afterFailures: item.attempts + 1, retryAfter: max(.seconds(1), retryAfter ?? .zero), fraction: randomFraction())
    }

    /// Stores the time of a removal's next attempt, or that the removal is finished.
    ///
    /// - Parameter nextAttempt: The time of the next attempt; nil if the removal is finished.
    /// - Returns: Whether the change is stored. If not, the removal is requested again later, which is harmless.
    private func storeNextAttempt(of item: PendingDiscard, at nextAttempt: Date?, backOffUntil: Date? = nil) async -> Bool {
        state.withLock { state in
            if nextAttempt == nil { state.postponed.remove(item.key) } else { state.postponed.insert(item.key) }
        }
        return await store(DiscardResult(key: item.key, nextAttempt: nextAttempt, backOffUntil: backOffUntil))
    }

    private func store(_ result: DiscardResult) async -> Bool {
        (try? await mailbox.send(.discarded(result))) != nil
    }
}
