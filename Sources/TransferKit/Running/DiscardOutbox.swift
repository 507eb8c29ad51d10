import Foundation
import Locking
import Logging
import TransferCore

/// Removes at servers what cancelled and removed sessions left there, and the parts of downloads on this machine: outside the slots, over restarts.
///
/// Each host has a worker, which asks it for one removal after the other while the queue is not stopped; a host that hangs or asks for time
/// holds up no other. Part files are removed at once. What a server will not remove is left to expire there.
final class DiscardOutbox: Sendable {
    private struct State: Sendable {
        var isEnabled = false
        var isClosed = false
        /// Whether something may be due.
        var isDirty = true
        /// Whether what earlier processes put off is to be tried now.
        var isEager = false
        /// What this process put off.
        var putOff: Set<Int64> = []
        var worker: Task<Void, Never>?
        var alarm: Task<Void, Never>?
        var waiters: [CheckedContinuation<Void, Never>] = []

        var hasWork: Bool { isDirty || isEager }
    }

    static let page = 64
    /// How many hosts are asked at once.
    private static let mostHosts = 16
    /// How long a server may take to remove one thing.
    static let timeout = Duration.seconds(120)
    /// How long a disk that hangs may hold up a shutdown.
    private static let lastRound = Duration.seconds(10)
    /// How long new removals wait at most for a worker.
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
    /// When the process opened the queue, on both clocks.
    private let opening: Moment
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
            if isEnabled, !state.isEnabled { state.isDirty = true }
            state.isEnabled = isEnabled
        }
        begin()
    }

    /// Something may have been put in.
    func look() {
        state.withLock { $0.isDirty = true }
        begin()
    }

    /// Tries now what earlier processes put off, once, and returns when that is done and nothing is due, or after so long.
    ///
    /// What this process put off has had its try, and a server that asked to be left alone has its time, whichever process was told that.
    func finish(within limit: Duration) async {
        state.withLock { state in
            state.isEager = true
            state.isDirty = true
        }
        begin()
        try? await Deadline.run(for: limit, clock, "Some of what sessions left at servers is still there.") { await self.waitUntilQuiet() }
    }

    /// Returns once nothing is due.
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

    /// Ends what is going on, but removes the parts that are due, as nobody may ever open this store again. The rest stays there.
    func shutdown() async {
        let worker = state.withLock { state in
            state.isClosed = true
            state.alarm?.cancel()
            state.worker?.cancel()
            return state.worker
        }
        await worker?.value
        try? await Deadline.run(for: Self.lastRound, clock, "Some parts of downloads are still there.") { await self.removeParts() }
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
        var isStored = await workOffHosts()
        // Read here and not earlier: ``finish(within:)`` may set it while the hosts are worked off.
        let isEager = state.withLock { state in
            defer { state.isEager = false }
            return state.isEager
        }
        if isStored, isEager { isStored = await tryWhatWasPutOff() }
        guard isStored else { return end(clock.date() + Self.firstDelay) }
        end((try? await store.dueDiscards(at: clock.date(), limit: 0, isLocalOnly: !isEnabled))?.next)
    }

    /// What a child task of ``workOffHosts()`` reports.
    private enum Report {
        /// The worker of a host has ended; false if a result can't be stored.
        case host(String, Bool)
        /// Something may have been put in.
        case change
    }

    /// Runs a worker for each host with due removals until nothing is due.
    ///
    /// - Returns: Whether the store could be read and all results are stored. If not, the hosts are asked again later.
    private func workOffHosts() async -> Bool {
        await withTaskGroup(of: Report.self) { group in
            var active: Set<String> = []
            // Hosts with something due, but without a free worker at that time.
            var missed: Set<String> = []
            var isStored = true
            var listens = false
            // Reading the hosts takes longer the more is due. While workers run, it takes at most a twentieth of the time.
            var pause = Duration.zero
            while isStored, !Task.isCancelled {
                let version = changes.version
                let isDirty = state.withLock { state in
                    defer { state.isDirty = false }
                    return state.isDirty
                }
                if isDirty {
                    let start = clock.now()
                    guard let hosts = await dueHosts() else {
                        isStored = false
                        break
                    }
                    pause = min((clock.now() - start) * 20, Self.longestPause)
                    for (host, places) in hosts {
                        guard active.count < Self.mostHosts, active.insert(host).inserted else {
                            missed.insert(host)
                            continue
                        }
                        group.addTask { .host(host, await self.workOff(host, places)) }
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
                        state.withLock { $0.isDirty = true }
                    }
                case .change?: listens = false
                case nil: break
                }
            }
            group.cancelAll()
            return isStored
        }
    }

    /// The hosts with due removals, and the endpoints there as the store has them; nil if the store can't be read.
    private func dueHosts() async -> [String: [String]]? {
        guard let places = try? await store.placesOfDueDiscards(at: clock.date(), isLocalOnly: !isEnabled) else { return nil }
        return Dictionary(grouping: places) { place in
            // One that can't be read is removed from the outbox.
            guard let endpoint: Endpoint = try? StoreCoding.decode(from: place) else { return "" }
            return endpoint.transport == LocalParts.transportID ? LocalParts.transportID.rawValue : endpoint.pausedName
        }
    }

    /// Works off what is due at one host, until that is done or the host is left alone.
    ///
    /// - Returns: Whether all results are stored.
    private func workOff(_ host: String, _ places: [String]) async -> Bool {
        while !Task.isCancelled {
            guard
                let found = try? await store.dueDiscards(
                    at: clock.date(), limit: Self.page, isLocalOnly: !isEnabled, among: places)
            else { return false }
            guard !found.due.isEmpty || !found.unreadable.isEmpty else { break }
            // Nobody knows what those meant; what is at their servers is left to expire.
            for key in found.unreadable {
                guard await store(DiscardResult(key: key, nextAttempt: nil)) else { return false }
            }
            if let pause = pause(of: host) {
                guard await postpone(places, pause) else { return false }
                continue
            }
            guard await discardParts(found.due) else { return false }
            // The queue may be stopped meanwhile: the rest stays due.
            for item in found.due where !item.isPart && isEnabled && !Task.isCancelled && pause(of: host) == nil {
                guard await discard(item) else { return false }
            }
        }
        return true
    }

    private func pause(of host: String) -> PausedHosts.Pause? { pauses.pause(of: host, at: clock.now()) }

    /// Puts all that is due at a host off until the host may be asked again; what has expired by now is given up.
    private func postpone(_ places: [String], _ pause: PausedHosts.Pause) async -> Bool {
        let now = clock.moment
        let until = now.date + (pause.end - now.uptime)
        let postponement = DiscardPostponement(
            places: places, dueAt: now.date, expiredAt: expiryDate, until: until, leftAloneUntil: pause.isAskedFor ? until : nil)
        return (try? await mailbox.send(.postponed(postponement))) != nil
    }

    /// The date that decides which removals are given up: the present date or, if that is earlier, the date of the opening plus the time since.
    /// A clock that is set ahead, or was ahead at the opening, gives up no removal early.
    private var expiryDate: Date { min(clock.date(), opening.date + (clock.now() - opening.uptime)) }

    /// - Returns: Whether what came of it is stored.
    private func tryWhatWasPutOff() async -> Bool {
        var last: Int64?
        while isEnabled, !Task.isCancelled, let found = try? await store.laterDiscards(at: clock.date(), after: last, limit: Self.page) {
            guard let end = found.last?.key else { break }
            last = end
            let putOff = state.withLock { $0.putOff }
            let hosts = Dictionary(grouping: found.filter { !$0.isPart && !putOff.contains($0.key) }, by: \.endpoint.pausedName)
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

    private func end(_ next: Date?) {
        let (waiters, again): ([CheckedContinuation<Void, Never>], Bool) = state.withLock { state in
            state.worker = nil
            state.alarm?.cancel()
            if let next, !state.isClosed {
                let delay = Duration.seconds(max(1, next.timeIntervalSince(clock.date())))
                state.alarm = Task { [clock, weak self] in
                    if (try? await clock.sleep(delay)) != nil { self?.look() }
                }
            }
            // The waiters also wait for the removals that were added since.
            guard !state.hasWork || state.isClosed else { return ([], true) }
            defer { state.waiters = [] }
            return (state.waiters, false)
        }
        for waiter in waiters { waiter.resume() }
        if again { begin() }
    }

    /// - Returns: Whether what came of it is stored.
    private func discard(_ item: PendingDiscard) async -> Bool {
        guard let transport = transports[item.endpoint.transport] as? any PartialDiscarding else {
            // Another process may have the transport; without the capability nobody can do it.
            let isMissing = transports[item.endpoint.transport] == nil
            return await settle(item, isMissing && item.giveUpAt > expiryDate ? clock.date() + delay(item) : nil)
        }
        let result = await Self.result {
            let message = "\(item.endpoint.location) took longer than \(Self.timeout) to remove what a session left there."
            try await Deadline.run(for: Self.timeout, clock, message) { [credentials] in
                try await transport.discard(item.checkpoint, at: item.endpoint, credentials: credentials)
            }
        }
        return await settle(item, result)
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
    /// - Returns: Whether it is stored.
    func settle(_ item: PendingDiscard, _ result: Result<Void, any Error>) async -> Bool {
        do {
            try result.get()
            return await settle(item, nil)
        } catch let error as TransferError where error.failureClass == .unsupported {
            // A server that removes nothing by its own word is no surprise.
            if error.code != .unsupported {
                logger.warning("What a session left at \(item.endpoint.location) stays there until it expires: \(error)")
            }
            return await settle(item, nil)
        } catch is CancellationError where Task.isCancelled {
            return true
        } catch {
            logger.info("What a session left at \(item.endpoint.location) can't be removed yet: \(error)")
            let error = error as? TransferError
            let now = clock.moment
            let delay = delay(item, retryAfter: error?.retryAfter)
            let asked = error?.retryAfter.map { min($0, RetryPolicy.longestRetryAfter) }
            // A part has no host: its disk is left alone while a removal there has not returned.
            if !item.isPart, error?.code == .timedOut || asked != nil {
                let length = asked.map { max($0, Self.firstDelay) } ?? delay
                pauses.leaveAlone(item.endpoint, PausedHosts.Pause(end: now.uptime + length, isAskedFor: asked != nil))
            }
            return await settle(
                item, item.giveUpAt <= expiryDate ? nil : now.date + delay, leftAloneUntil: asked.map { now.date + $0 })
        }
    }

    private func delay(_ item: PendingDiscard, retryAfter: Duration? = nil) -> Duration {
        RetryPolicy(base: Self.firstDelay, maximumDelay: Self.longestDelay)
            .delay(afterFailures: item.attempts + 1, retryAfter: max(.seconds(1), retryAfter ?? .zero), fraction: randomFraction())
    }

    /// - Parameter nextAttempt: When to try again; nil if there is nothing more to do.
    /// - Returns: Whether that is stored; if not, the server is asked again later, which does no harm.
    private func settle(_ item: PendingDiscard, _ nextAttempt: Date?, leftAloneUntil: Date? = nil) async -> Bool {
        state.withLock { state in
            if nextAttempt == nil { state.putOff.remove(item.key) } else { state.putOff.insert(item.key) }
        }
        return await store(DiscardResult(key: item.key, nextAttempt: nextAttempt, leftAloneUntil: leftAloneUntil))
    }

    private func store(_ result: DiscardResult) async -> Bool {
        (try? await mailbox.send(.discarded(result))) != nil
    }
}
