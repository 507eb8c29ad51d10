import Foundation
import Locking
import Logging
import TransferCore

/// Removes abandoned content of sessions from servers, and the part files of downloads from this machine. Removals use no session slots.
/// Pending removals survive restarts of the process. In names of symbols, a removal is a *discard*, and the stored list of pending removals
/// is the *outbox* (``DiscardQuery``).
///
/// Each host with due removals has its own worker, which requests one removal at a time; at most 64 hosts have a worker. A host that hangs
/// or asks to back off therefore does not delay other hosts. While the queue is stopped, only part files are removed. Content that a server
/// refuses to remove stays on the server.
///
/// The machine's clock can be wrong, and can be set at any time. The outbox therefore corrects stored times that no process with a correct clock
/// would store. Before each search for due removals, it corrects the times of the next attempts
/// (``QueueStore/correctImplausiblyLateDiscards()``). Before each attempt, it corrects the deadlines (``QueueStore/correctDeadlines(of:)``).
final class DiscardOutbox: Sendable {
    private struct State: Sendable {
        var isEnabled = false
        var isClosed = false
        var mayHaveDue = true
        /// Whether the removals that earlier processes postponed must be retried now.
        var mustRetryPostponed = false
        /// The keys of the removals that this process postponed.
        var postponed: Set<Int64> = []
        var worker: Task<Void, Never>?
        var alarm: Task<Void, Never>?
        var waiters: [CheckedContinuation<Void, Never>] = []

        var hasWork: Bool { mayHaveDue || mustRetryPostponed }
    }

    static let pageSize = 64
    /// The maximum number of postponed removals that one transaction makes due.
    private static let retryPageSize = 1_000
    private static let maximumHosts = 64
    /// The maximum duration of one removal from a server, or of the removal of part files from one download folder.
    static let timeout = Duration.seconds(120)
    /// The maximum time by which a hanging disk can delay a shutdown.
    private static let shutdownLimit = Duration.seconds(10)
    /// The longest pause between two reads of the hosts with due removals.
    private static let longestPause = Duration.seconds(30)
    /// The upper bound of the random delay after the first failed attempt. The bound doubles with each failed attempt, up to
    /// ``longestDelay``.
    static let firstDelay = Duration.seconds(10)
    static let longestDelay = Duration.seconds(3_600)

    let store: QueueStore
    let transports: [TransportID: any Transport]
    let partFiles: LocalPartFiles
    let credentials: any CredentialProvider
    let clock: EngineClock
    let logger: Logger
    let randomFraction: @Sendable () -> Double
    private let mailbox: Mailbox
    /// A time from which ``expiryDate`` counts the uptime: the time at which the process opened the queue, or a later time after a large
    /// change to the machine's clock.
    let reference: Locked<DualInstant>
    private let changes = ChangeSignal()
    let pauses = PausedHosts()
    private let state = Locked(State())

    init(
        store: QueueStore, transports: [TransportID: any Transport], credentials: any CredentialProvider, clock: EngineClock,
        logger: Logger,
        randomFraction: @escaping @Sendable () -> Double, mailbox: Mailbox
    ) {
        self.store = store
        self.transports = transports
        partFiles = LocalPartFiles(sources: store.sources)
        self.credentials = credentials
        self.clock = clock
        self.logger = logger
        self.randomFraction = randomFraction
        self.mailbox = mailbox
        reference = Locked(clock.moment)
    }

    /// Allows removals from servers, or stops them because the queue is stopped. Part files are removed in both cases.
    func setEnabled(_ isEnabled: Bool) {
        state.withLock { state in
            if isEnabled, !state.isEnabled { state.mayHaveDue = true }
            state.isEnabled = isEnabled
        }
        begin()
    }

    /// Checks for removals that are due. Call this method after removals may have been added.
    func wake() {
        state.withLock { $0.mayHaveDue = true }
        begin()
    }

    /// Makes one attempt at each removal that an earlier process postponed. Returns when these attempts have ended and no removal is due,
    /// or after the time limit.
    ///
    /// Skips removals that this process has already tried and postponed. Also skips hosts that took too long in this process, or that asked
    /// this process or an earlier process to back off. While the queue is stopped, only due part files are removed.
    func finish(within limit: Duration) async {
        state.withLock { state in
            state.mustRetryPostponed = true
            state.mayHaveDue = true
        }
        begin()
        try? await TimeLimit.run(for: limit, clock, "Some remote content has not been removed yet.") { await self.waitUntilQuiet() }
    }

    /// Waits until no removal is due, the database has failed, or the outbox is shut down. A stopped queue waits only for removals of part
    /// files.
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

    /// Stops the removals from servers. Still removes due part files, for up to 10 s, because the queue may never be opened again. All other
    /// removals stay in the database.
    func shutdown() async {
        let worker = state.withLock { state in
            state.isClosed = true
            state.alarm?.cancel()
            state.worker?.cancel()
            return state.worker
        }
        await worker?.value
        try? await TimeLimit.run(for: Self.shutdownLimit, clock, "Some part files have not been removed yet.") {
            await self.removePartFiles()
        }
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
        await pauses.load(from: store, at: clock.moment)
        guard await processHosts() else { return end(clock.date() + Self.firstDelay) }
        end((try? await store.dueDiscards(at: clock.date(), limit: 0, isLocalOnly: !isEnabled))?.next)
    }

    /// An event of a child task of ``processHosts()``.
    private enum WorkerEvent {
        /// The worker of a host has ended. The Boolean is false if the database could not be read, or did not store a result.
        case host(String, Bool)
        /// ``makePostponedDue()`` has ended. The Boolean is its result.
        case madeDue(Bool)
        /// Removals may have been added.
        case change
    }

    /// Runs a worker for each host with due removals, until no removal is due. If the removals that earlier processes postponed must be
    /// retried, makes them due, so that the same workers perform them.
    ///
    /// - Returns: Whether the database could be read and all results were stored. If not, the removals are requested again later.
    private func processHosts() async -> Bool {
        await withTaskGroup(of: WorkerEvent.self) { group in
            var active: Set<String> = []
            // Hosts with due removals for which no worker could be started, because the maximum number of workers was running or the host's own
            // worker was still running.
            var missed: Set<String> = []
            var isStored = true
            var isListening = false
            var isMakingDue = false
            // With many due removals, reading the hosts is slow. The pause after a read is 20 times as long as the read, so reading takes
            // up only a small part of the time.
            var pause = Duration.zero
            while isStored, !Task.isCancelled {
                let version = changes.version
                if !isMakingDue, beginRetry() {
                    isMakingDue = true
                    group.addTask { .madeDue(await self.makePostponedDue()) }
                }
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
                guard !active.isEmpty || isMakingDue else { break }
                if !isListening {
                    isListening = true
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
                case .madeDue(let hasStored)?:
                    isMakingDue = false
                    isStored = hasStored
                case .change?: isListening = false
                case nil: break
                }
            }
            group.cancelAll()
            return isStored
        }
    }

    /// The endpoints with due removals, in their stored form, grouped by host; nil if the database can't be read.
    private func dueHosts() async -> [String: [String]]? {
        // If the database refuses this change, the outbox still performs the removals that are due.
        try? await store.correctImplausiblyLateDiscards()
        guard let storedEndpoints = try? await store.endpointsOfDueDiscards(at: clock.date(), isLocalOnly: !isEnabled) else { return nil }
        return Dictionary(grouping: storedEndpoints) { stored in
            // Removals with an unreadable endpoint share one worker, which deletes them from the outbox.
            guard let endpoint: Endpoint = try? StoreCoding.decode(from: stored) else { return "" }
            return endpoint.transport == TransportID.localPartFiles ? TransportID.localPartFiles.rawValue : endpoint.pauseKey
        }
    }

    /// Performs the due removals of one host. If the host is paused, postpones the remaining removals.
    ///
    /// - Returns: Whether all results are stored.
    private func process(_ host: String, _ storedEndpoints: [String]) async -> Bool {
        while !Task.isCancelled {
            guard
                let found = try? await store.dueDiscards(
                    at: clock.date(), limit: Self.pageSize, isLocalOnly: !isEnabled, among: storedEndpoints)
            else { return false }
            guard !found.due.isEmpty || !found.unreadable.isEmpty else { break }
            await correctDeadlines(of: found.due)
            // Unreadable removals can't be performed. Delete these removals from the outbox; their content stays where it is.
            for key in found.unreadable {
                guard await store(DiscardResult(key: key, nextAttempt: nil)) else { return false }
            }
            if let pause = pause(of: host) {
                guard await postpone(storedEndpoints, pause) else { return false }
                continue
            }
            guard await discardPartFiles(found.due) else { return false }
            // If the queue is stopped during this loop, the remaining removals stay due.
            for removal in found.due where !removal.isPartFile && isEnabled && !Task.isCancelled && pause(of: host) == nil {
                guard await discard(removal) else { return false }
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

    /// Returns whether the removals that earlier processes postponed must be retried, and resets `mustRetryPostponed`.
    private func beginRetry() -> Bool {
        state.withLock { state in
            defer { state.mustRetryPostponed = false }
            return state.mustRetryPostponed
        }
    }

    /// Makes removals due now that earlier processes postponed. Omits removals at paused hosts, and removals that this process postponed.
    ///
    /// - Returns: Whether the database could be read and changed.
    private func makePostponedDue() async -> Bool {
        var last: Int64?
        while isEnabled, !Task.isCancelled {
            guard let found = try? await store.laterDiscards(at: clock.date(), after: last, limit: Self.retryPageSize) else { return false }
            guard let end = found.last?.key else { break }
            last = end
            let candidates = found.filter { !$0.isPartFile && pause(of: $0.endpoint.pauseKey) == nil }.map(\.key)
            let keys = state.withLock { state in candidates.filter { !state.postponed.contains($0) } }
            guard !keys.isEmpty else { continue }
            guard (try? await store.makeDue(keys)) != nil else { return false }
            state.withLock { $0.mayHaveDue = true }
            changes.send()
        }
        return true
    }

    private var isEnabled: Bool { state.withLock { $0.isEnabled } }

    /// Ends the worker. Resumes the waiters, or begins again if removals may have been added.
    ///
    /// - Parameter next: The date at which the outbox wakes up again; nil for no date. If the date is farther away than the longest delay of a
    ///   removal, the machine's clock was set back after the date was chosen, and the outbox wakes up after that delay.
    private func end(_ next: Date?) {
        let (waiters, again): ([CheckedContinuation<Void, Never>], Bool) = state.withLock { state in
            state.worker = nil
            state.alarm?.cancel()
            if let next, !state.isClosed {
                let delay = min(Duration.seconds(max(1, next.timeIntervalSince(clock.date()))), QueueStore.longestDiscardDelay)
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

    /// Stores the time of a removal's next attempt, or that the removal is finished.
    ///
    /// - Parameter nextAttempt: The time of the next attempt; nil if the removal is finished.
    /// - Returns: Whether the change is stored. If not, the removal is requested again later, which is harmless.
    func storeNextAttempt(of removal: PendingDiscard, at nextAttempt: Date?, backOffUntil: Date? = nil) async -> Bool {
        state.withLock { state in
            if nextAttempt == nil { state.postponed.remove(removal.key) } else { state.postponed.insert(removal.key) }
        }
        let freesSpace = removal.isPartFile && nextAttempt == nil
        return await store(DiscardResult(key: removal.key, nextAttempt: nextAttempt, backOffUntil: backOffUntil, freesSpace: freesSpace))
    }

    private func store(_ result: DiscardResult) async -> Bool {
        (try? await mailbox.send(.discarded(result))) != nil
    }
}
