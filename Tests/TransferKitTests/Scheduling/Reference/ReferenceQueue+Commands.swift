import Foundation
import TransferKit

extension ReferenceQueue {
    mutating func handle(_ command: Command) throws(QueueError) -> InputResult {
        switch command {
        case .saveAccount(let account): save(account)
        case .replaceAccount(let previous, let account):
            guard accounts.first(where: { $0.account.name == account.name })?.account == previous else { return InputResult() }
            save(account)
            var result = InputResult()
            result.isGranted = true
            return result
        case .deleteAccount(let name, let cascade): return try deleteAccount(name, cascade: cascade)
        case .unblockAccount(let name): unblock(try requireAccount(name))
        case .retryEndpoints(let name):
            let number = accounts[try requireAccount(name)].number
            retryEndpoints(of: number)
            endBackoffs(of: number)
        case .setMaxConcurrentSessions(let limit, let account?): accounts[try requireAccount(account)].account.maxConcurrentSessions = limit
        case .setMaxConcurrentSessions(let limit, nil): self.limit = limit ?? self.limit
        case .setRateLimit(let rate, let account?): accounts[try requireAccount(account)].account.rateLimit = rate
        // A rate limit does not affect the reference queue. Generated sequences change no retention, disk floor or timetable, and add no
        // progress.
        case .setRateLimit(_, nil), .setRetention, .setDiskFloor, .setTimetable, .addProgress: break
        case .enqueue(let drafts, let index, let expecting, let isHeld):
            return try enqueue(drafts, at: index, expecting: expecting, isHeld: isHeld)
        case .saveDrafts(let drafts): return try saveDrafts(drafts)
        case .addItems(let reference, let items): return try add(items, to: reference)
        case .replaceItems(let selection, _, _, let reference): return try replaceItems(selection, in: reference)
        case .perform(let operation, let target): return try perform(operation, on: target)
        case .quarantine(let id, _): return try quarantine(resolve(.id(id)))
        case .withdraw(let id): return try perform(.remove(isForced: true), on: .one(.id(id)))
        case .setNetwork(let condition):
            if condition != network, condition != .unavailable {
                health.retryAll(now)
                for index in sessions.indices { sessions[index].retryAt = nil }
            }
            network = condition
            interruptSessionsWithoutNetwork()
        case .newRoute:
            health.retryOutages(now)
            for account in accounts where health.hasOnlyOutages(at: account.account.endpoints) { endBackoffs(of: account.number) }
        case .start: mode = .running
        case .stop(let how, let deadline): stop(how, deadline: deadline)
        }
        return InputResult()
    }

    // MARK: Accounts

    private mutating func save(_ account: Account) {
        if let index = accounts.firstIndex(where: { $0.account.name == account.name }) {
            if accounts[index].isBlocked || accounts[index].account.endpoints != account.endpoints {
                endBackoffs(of: accounts[index].number)
            }
            accounts[index].account = account
            accounts[index].isBlocked = false
            accounts[index].latestRunAtUnblocking = runNumbers
        } else {
            accountNumbers += 1
            accounts.append(ReferenceAccount(number: accountNumbers, account: account))
        }
        for endpoint in account.endpoints { health.retry(endpoint, now) }
    }

    mutating func retryEndpoints(of number: Int) {
        for endpoint in account(number)?.account.endpoints ?? [] { health.retry(endpoint, now) }
    }

    private mutating func endBackoffs(of number: Int) {
        for index in sessions.indices where sessions[index].account == number { sessions[index].retryAt = nil }
    }

    private mutating func unblock(_ index: Int) {
        retryEndpoints(of: accounts[index].number)
        endBackoffs(of: accounts[index].number)
        guard accounts[index].isBlocked else { return }
        accounts[index].isBlocked = false
        accounts[index].latestRunAtUnblocking = runNumbers
    }

    private mutating func deleteAccount(_ name: String, cascade: Bool) throws(QueueError) -> InputResult {
        let index = try requireAccount(name)
        let ids = sessions.filter { $0.account == accounts[index].number }.map(\.id)
        guard ids.isEmpty || cascade else { throw QueueError(.accountInUse, "") }
        guard !sessions.contains(where: { !ids.contains($0.id) && $0.dependency.map { ids.contains($0.session) } ?? false }) else {
            throw QueueError(.hasDependents, "")
        }
        removeNow(ids)
        accounts.remove(at: index)
        return InputResult(sessions: ids)
    }

    // MARK: Adding

    private mutating func enqueue(
        _ drafts: [SessionDraft], at index: Int?, expecting: UInt64?, isHeld: Bool
    ) throws(QueueError) -> InputResult {
        var result = InputResult()
        var wanted: [SessionDraft] = []
        // Maps the ID of each draft to the ID of its session. The IDs differ if the draft is a duplicate.
        var identities: [SessionID: SessionID] = [:]
        for draft in drafts {
            let equal = sessions.filter {
                $0.deduplicationKey != nil && $0.state != .draft && $0.deduplicationKey == draft.deduplicationKey
            }
            let earlier = wanted.first { $0.deduplicationKey != nil && $0.deduplicationKey == draft.deduplicationKey }
            let newest = equal.filter { $0.state == .completed }.max { $0.number < $1.number }
            let uncompleted = earlier?.id ?? equal.first { $0.state != .completed }?.id
            let same = uncompleted ?? (draft.deduplicatesCompleted ? newest?.id : nil)
            identities[draft.id] = same ?? draft.id
            result.sessions.append(same ?? draft.id)
            if same == nil { wanted.append(draft) } else { _ = try requireAccount(draft.account) }
        }
        guard !wanted.isEmpty else { return result }
        guard expecting == nil || expecting == orderRevision else { throw QueueError(.staleOrder, "") }
        let index = index ?? orderedCount
        guard (0...orderedCount).contains(index) else { throw QueueError(.indexOutOfRange, "") }
        var added: [ReferenceSession] = []
        for draft in wanted {
            let account = accounts[try requireAccount(draft.account)].number
            sessionNumbers += 1
            added.append(ReferenceSession(draft, account: account, number: sessionNumbers, isHeld: isHeld))
        }
        try insert(added, at: index, identities)
        orderRevision += 1
        for later in sessions.indices where later > index { clearInterruptedPriority(later) }
        return result
    }

    /// Inserts new sessions, and then sets their unsatisfied dependencies.
    mutating func insert(_ added: [ReferenceSession], at index: Int, _ identities: [SessionID: SessionID] = [:]) throws(QueueError) {
        sessions.insert(contentsOf: added, at: index)
        for number in added.indices { sessions[index + number].dependency = nil }
        for (number, session) in added.enumerated() {
            guard var dependency = session.dependency else { continue }
            dependency.session = identities[dependency.session] ?? dependency.session
            let other = sessions[try requireIndex(of: dependency.session)]
            sessions[index + number].dependency = isSatisfied(dependency, by: other) ? nil : dependency
            try requireOrderOfDependencies()
        }
        try requireNoCycle()
    }

    func isSatisfied(_ dependency: SessionDependency, by other: ReferenceSession) -> Bool {
        other.state == .completed || (dependency.acceptsAnyEnd && other.state.isEnded && !other.isEnding)
    }

    func requireNoCycle() throws(QueueError) {
        for session in sessions {
            var next = session.dependency
            var steps = 0
            while let dependency = next, steps <= sessions.count {
                next = sessions.first { $0.id == dependency.session }?.dependency
                steps += 1
            }
            guard steps <= sessions.count else { throw QueueError(.impossibleOrder, "") }
        }
    }

    /// In a strict queue, no session may depend on a later one.
    func requireOrderOfDependencies() throws(QueueError) {
        guard isStrict else { return }
        for (position, session) in sessions.enumerated() {
            if let other = session.dependency?.session, let otherPosition = index(of: other), otherPosition > position,
                session.state != .draft, sessions[otherPosition].state != .draft
            {
                throw QueueError(.impossibleOrder, "")
            }
        }
    }

    mutating func clearInterruptedPriority(_ index: Int) {
        guard sessions[index].startPriority == .interrupted else { return }
        sessions[index].clearStartPriority()
        restoreDisplaced(by: sessions[index].id)
    }

    private mutating func add(_ items: [ItemDraft], to reference: SessionReference) throws(QueueError) -> InputResult {
        let index = try requireIndex(of: resolve(reference))
        guard !sessions[index].state.isEnded else { throw QueueError(.invalidTransition, "") }
        sessions[index].hasNewItems = sessions[index].run != nil
        return InputResult(sessions: [sessions[index].id])
    }

    // MARK: Stopping

    private mutating func stop(_ how: StopMode, deadline: Duration?) {
        guard mode == .running || mode == .draining else { return }
        switch how {
        case .interrupt: interruptAll()
        case .drain:
            mode = .draining
            drainDeadline = deadline.map { now.uptime + $0 }
        }
    }

    mutating func interruptSessionsWithoutNetwork() {
        for index in sessions.indices where sessions[index].state == .running && !mayUseNetwork(sessions[index]) {
            sessions[index].state = .waiting
            sessions[index].startPriority = .interrupted
            requestStop(index)
        }
    }

    mutating func interruptAll() {
        mode = .stopping
        for index in sessions.indices where sessions[index].state == .running {
            sessions[index].state = .waiting
            sessions[index].startPriority = .interrupted
            requestStop(index)
        }
    }
}
