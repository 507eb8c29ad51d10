import Foundation
import Locking
import Logging
import TransferCore

/// Removes at servers what cancelled and removed sessions left there, and the parts of downloads on this machine: outside the slots, over restarts.
///
/// Servers are asked one after the other, while the queue is not stopped; parts are removed at once. What a server will not remove is left to
/// expire there.
final class DiscardOutbox: Sendable {
    /// A host that is not asked before a time.
    private struct Pause: Sendable {
        var end: Date
        /// Until when it asked to be left alone; nil if it took too long.
        var asked: Date?
    }

    private struct State: Sendable {
        var isEnabled = false
        var isClosed = false
        /// Whether something may be due.
        var isDirty = true
        /// Whether what earlier processes put off is to be tried now.
        var isEager = false
        /// Hosts that took too long, or asked to be left alone: what else is there waits as well. Nil until the store was asked.
        var pauses: [String: Pause]?
        /// What this process put off.
        var putOff: Set<Int64> = []
        var worker: Task<Void, Never>?
        var alarm: Task<Void, Never>?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private static let page = 64
    /// How long a server may take to remove one thing.
    private static let timeout = Duration.seconds(120)
    /// How long a disk that hangs may hold up a shutdown.
    private static let lastRound = Duration.seconds(10)
    private static let firstDelay = Duration.seconds(10)
    private static let longestDelay = Duration.seconds(3_600)

    private let store: QueueStore
    private let transports: [TransportID: any Transport]
    private let credentials: any CredentialProvider
    private let clock: EngineClock
    private let logger: Logger
    private let randomFraction: @Sendable () -> Double
    private let mailbox: Mailbox
    private let state = Locked(State())

    init(
        store: QueueStore, transports: [TransportID: any Transport], credentials: any CredentialProvider, clock: EngineClock,
        logger: Logger,
        randomFraction: @escaping @Sendable () -> Double, mailbox: Mailbox
    ) {
        self.store = store
        self.transports = transports.merging([LocalParts.transportID: LocalParts(sources: store.sources)]) { $1 }
        self.credentials = credentials
        self.clock = clock
        self.logger = logger
        self.randomFraction = randomFraction
        self.mailbox = mailbox
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

    private func removeParts() async {
        while !Task.isCancelled, let found = try? await store.dueDiscards(at: clock.date(), limit: Self.page, isLocalOnly: true),
            !found.due.isEmpty, await discardParts(found.due)
        {}
    }

    private func begin() {
        state.withLock { state in
            guard state.isDirty, !state.isClosed, state.worker == nil else { return }
            state.isDirty = false
            state.worker = Task { await self.work() }
        }
    }

    private func work() async {
        var next: Date?
        await learnPauses()
        let isEager = state.withLock { state in
            defer { state.isEager = false }
            return state.isEager
        }
        repeat {
            guard let found = try? await store.dueDiscards(at: clock.date(), limit: Self.page, isLocalOnly: !isEnabled) else { break }
            next = found.next
            guard await discardParts(found.due) else { return end(clock.date() + Self.firstDelay) }
            // The queue may be stopped meanwhile: the rest stays due.
            for item in found.due where !item.isPart && isEnabled && !Task.isCancelled {
                guard await discard(item) else {
                    // What came of it can't be stored: asking the server again at once would help nobody.
                    return end(clock.date() + Self.firstDelay)
                }
            }
            // Nobody will ever know what those meant; what is at their servers is left to expire.
            for key in found.unreadable { _ = try? await mailbox.send(.discarded(DiscardResult(key: key, nextAttempt: nil))) }
            if found.due.isEmpty { break }
        } while !Task.isCancelled
        if isEager {
            guard await tryWhatWasPutOff() else { return end(clock.date() + Self.firstDelay) }
            next = (try? await store.dueDiscards(at: clock.date(), limit: 0, isLocalOnly: !isEnabled))?.next ?? next
        }
        end(next)
    }

    /// - Returns: Whether what came of it is stored.
    private func tryWhatWasPutOff() async -> Bool {
        var last: Int64?
        while isEnabled, !Task.isCancelled, let found = try? await store.laterDiscards(at: clock.date(), after: last, limit: Self.page) {
            guard let end = found.last?.key else { break }
            last = end
            let putOff = state.withLock { $0.putOff }
            for item in found where !item.isPart && !putOff.contains(item.key) && isEnabled && !Task.isCancelled {
                guard await discard(item) else { return false }
            }
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
            // Who waits for what came meanwhile waits for that, too.
            guard !state.isDirty || state.isClosed else { return ([], true) }
            defer { state.waiters = [] }
            return (state.waiters, false)
        }
        for waiter in waiters { waiter.resume() }
        if again { begin() }
    }

    /// Removes parts on this machine, all at once, so that what came of them shares a transaction: each download that completes leaves one.
    private func discardParts(_ items: [PendingDiscard]) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            for item in items where item.isPart && !Task.isCancelled {
                group.addTask { await self.discard(item) }
            }
            return await group.reduce(true) { $0 && $1 }
        }
    }

    /// Takes from the store, once, which servers asked earlier processes to be left alone.
    private func learnPauses() async {
        guard state.withLock({ $0.pauses == nil }), let known = try? await store.serversLeftAlone(at: clock.date()) else { return }
        state.withLock { state in
            var pauses: [String: Pause] = [:]
            for (endpoint, date) in known where date > pauses[endpoint.pausedName]?.end ?? .distantPast {
                pauses[endpoint.pausedName] = Pause(end: date, asked: date)
            }
            state.pauses = pauses
        }
    }

    /// - Returns: Whether what came of it is stored.
    private func discard(_ item: PendingDiscard) async -> Bool {
        let host = item.endpoint.pausedName
        let now = clock.date()
        if let pause = state.withLock({ $0.pauses?[host] }), pause.end > now {
            return await settle(item, max(pause.end, now + delay(item)), leftAloneUntil: pause.asked)
        }
        guard let transport = transports[item.endpoint.transport] as? any PartialDiscarding else {
            // Another process may have the transport; without the capability nobody can do it.
            let isMissing = transports[item.endpoint.transport] == nil
            return await settle(item, isMissing && item.giveUpAt > now ? now + delay(item) : nil)
        }
        do {
            let message = "\(item.endpoint.location) took longer than \(Self.timeout) to remove what a session left there."
            try await Deadline.run(for: Self.timeout, clock, message) { [credentials] in
                try await transport.discard(item.checkpoint, at: item.endpoint, credentials: credentials)
            }
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
            let now = clock.date()
            let next = now + delay(item, retryAfter: error?.retryAfter)
            let asked = error?.retryAfter.map { now + min($0, RetryPolicy.longestRetryAfter) }
            if error?.code == .timedOut || asked != nil {
                let end = max(asked ?? now, now + Self.firstDelay)
                state.withLock { $0.pauses?[host] = Pause(end: end, asked: asked) }
            }
            return await settle(item, item.giveUpAt <= now ? nil : next, leftAloneUntil: asked)
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
        let result = DiscardResult(key: item.key, nextAttempt: nextAttempt, leftAloneUntil: leftAloneUntil)
        return (try? await mailbox.send(.discarded(result))) != nil
    }
}

extension Endpoint {
    /// What is left alone together.
    fileprivate var pausedName: String { host ?? address }
}

extension PendingDiscard {
    fileprivate var isPart: Bool { endpoint.transport == LocalParts.transportID }
}
