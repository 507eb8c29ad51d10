import Foundation
import TransferKit

extension ReferenceQueue {
    mutating func perform(_ operation: SessionOperation, on target: SessionTarget) throws(QueueError) -> InputResult {
        marks += 1
        switch target {
        case .one(let reference):
            let id = try resolve(reference)
            switch operation {
            case .enqueue(let destination, let isHeld): return try enqueueDrafts([id], isGroup: false, to: destination, isHeld: isHeld)
            case .move(let destination):
                try requirePosition(of: id)
                return try move([id], to: destination)
            case .remove(let isForced): return try remove([id], isForced: isForced)
            case .update(let update): try requireNames(in: update)
            default: break
            }
            return try change(id, by: operation)
        case .found(let found, let group), .more(let found, let group, _):
            let members = sessions.filter { found.contains($0.id) && isMember($0, of: group) }.map(\.id)
            return try perform(operation, on: .group(.sessions(members)))
        case .group(let group):
            let ids = try resolve(group)
            switch operation {
            case .enqueue(let destination, let isHeld): return try enqueueDrafts(ids, isGroup: true, to: destination, isHeld: isHeld)
            case .move(let destination): return try move(ids.filter { (try? requirePosition(of: $0)) != nil }, to: destination)
            case .remove(let isForced): return try remove(ids, isForced: isForced)
            case .update(let update): try requireNames(in: update)
            default: break
            }
            return changeAll(ids, by: operation)
        }
    }

    /// Quarantines a session. The session's outcome is then unknown, so waiting sessions that depend on the session are held.
    mutating func quarantine(_ id: SessionID) throws(QueueError) -> InputResult {
        let dependents = sessions.filter { $0.dependency?.session == id && $0.state == .waiting }.map(\.id)
        let result = try remove([id], isForced: true)
        for other in dependents { _ = try change(other, by: .hold) }
        return result
    }

    /// Applies an operation to several sessions. Skips sessions in a state for which the operation is not valid.
    private mutating func changeAll(_ ids: [SessionID], by operation: SessionOperation) -> InputResult {
        var result = InputResult()
        for id in ids {
            guard let one = try? change(id, by: operation) else { continue }
            result.sessions += one.sessions
            result.held += one.held
        }
        return result
    }

    func resolve(_ reference: SessionReference) throws(QueueError) -> SessionID {
        switch reference {
        case .id(let id): return sessions[try requireIndex(of: id)].id
        case .index(let index, let expecting):
            guard expecting == nil || expecting == orderRevision else { throw QueueError(.staleOrder, "") }
            guard (0..<orderedCount).contains(index) else { throw QueueError(.indexOutOfRange, "") }
            return sessions[index].id
        }
    }

    private func resolve(_ group: SessionGroup) throws(QueueError) -> [SessionID] {
        switch group {
        case .all: return sessions.prefix(orderedCount).map(\.id)
        case .account(let name):
            let number = accounts[try requireAccount(name)].number
            return sessions.prefix(orderedCount).filter { $0.account == number }.map(\.id)
        case .tag(let tag): return sessions.prefix(orderedCount).filter { $0.tags.contains(tag) }.map(\.id)
        case .state(let state): return sessions.filter { $0.state == state }.map(\.id)
        case .sessions(let ids):
            for id in ids { _ = try requireIndex(of: id) }
            return sessions.map(\.id).filter { ids.contains($0) }
        }
    }

    private func isMember(_ session: ReferenceSession, of group: SessionGroup) -> Bool {
        switch group {
        case .all, .sessions: true
        case .account(let name): account(session.account)?.account.name == name
        case .tag(let tag): session.tags.contains(tag)
        case .state(let state): session.shownState == state
        }
    }

    private mutating func change(_ id: SessionID, by operation: SessionOperation) throws(QueueError) -> InputResult {
        let index = try requireIndex(of: id)
        let state = sessions[index].state
        switch (operation, state) {
        case (.run, .running):
            retryEndpoints(of: sessions[index].account)
            sessions[index].runAgainMark = marks
            return InputResult()
        case (.run(let again), _): try run(index, again: again)
        case (.runNext, .waiting): markNext(index)
        case (.pause, .running): pause(index)
        case (.pause, .waiting):
            hold(index)
            return InputResult(sessions: [id], held: [id])
        case (.resume, .paused): resume(index)
        case (.hold, .waiting), (.hold, .running), (.hold, .paused): hold(index)
        case (.release, .held), (.resume, .held): sessions[index].state = .waiting
        case (.yield, .waiting), (.yield, .running), (.yield, .paused): yield(index)
        case (.cancel, .waiting), (.cancel, .running), (.cancel, .paused), (.cancel, .held), (.cancel, .failed): cancel(index)
        case (.retry, .failed), (.retry, .cancelled):
            try retry(index)
            retryEndpoints(of: sessions[index].account)
        case (.update(let update), _) where state != .completed:
            // Updates a copy, because a rejected update must change nothing.
            var copy = self
            try copy.update(index, update)
            self = copy
        default: throw QueueError(.invalidTransition, "")
        }
        return InputResult(sessions: [id])
    }

    // MARK: One session

    private mutating func run(_ index: Int, again: Bool) throws(QueueError) {
        switch sessions[index].state {
        case .paused where sessions[index].displacedBy == nil:
            retryEndpoints(of: sessions[index].account)
            resume(index)
            if sessions[index].state == .waiting { makeRoom(for: index) }
            return
        case .draft: throw QueueError(.invalidTransition, "")
        case .completed where !again: throw QueueError(.alreadyCompleted, "")
        case .completed, .failed, .cancelled: try retry(index)
        default: break
        }
        runNow(index, mark: marks)
    }

    mutating func runNow(_ index: Int, mark: Int) {
        retryEndpoints(of: sessions[index].account)
        sessions[index].state = .waiting
        sessions[index].retryAt = nil
        sessions[index].notBefore = nil
        sessions[index].dependency = nil
        sessions[index].yieldedAt = nil
        sessions[index].displacedBy = nil
        sessions[index].startPriority = .now
        sessions[index].mark = mark
        makeRoom(for: index)
    }

    private mutating func markNext(_ index: Int) {
        sessions[index].startPriority = .next
        sessions[index].mark = marks
    }

    private mutating func pause(_ index: Int) {
        sessions[index].state = .paused
        requestStop(index)
    }

    private mutating func resume(_ index: Int) {
        if sessions[index].displacedBy == nil, mode == .running, isAble(sessions[index]), mayRunBesideOthers(sessions[index]) {
            sessions[index].state = .running
            if sessions[index].run == nil { beginRun(index) }
        } else {
            sessions[index].state = .waiting
            sessions[index].startPriority = .now
            sessions[index].mark = marks
        }
    }

    /// Returns whether the limits allow another run, regardless of the number of slots in use.
    private func mayRunBesideOthers(_ session: ReferenceSession) -> Bool {
        let ofAccount = accountsOfRuns.count { $0 == session.account }
        return session.run != nil || accountsOfRuns.count < queueLimit && ofAccount < limit(ofAccount: session.account)
    }

    private mutating func hold(_ index: Int) {
        sessions[index].state = .held
        sessions[index].displacedBy = nil
        sessions[index].yieldedAt = nil
        sessions[index].clearStartPriority()
        restoreDisplaced(by: sessions[index].id)
        requestStop(index)
    }

    private mutating func yield(_ index: Int) {
        sessions[index].state = .waiting
        sessions[index].yieldedAt = now.uptime
        restoreDisplaced(by: sessions[index].id)
        requestStop(index)
    }

    private mutating func cancel(_ index: Int) {
        requestStop(index)
        end(index, as: .cancelled)
    }

    private mutating func retry(_ index: Int) throws(QueueError) {
        if let key = sessions[index].deduplicationKey {
            let others = sessions.filter {
                $0.id != sessions[index].id && $0.deduplicationKey == key && ![.completed, .draft].contains($0.state)
            }
            guard others.isEmpty else { throw QueueError(.duplicate, "") }
        }
        sessions[index].state = .waiting
        // A run in progress does not repeat the failed items, so another run must follow.
        if sessions[index].run != nil { sessions[index].hasNewItems = true }
        sessions[index].retryAt = nil
        sessions[index].endedAt = nil
        sessions[index].keptSince = nil
    }

    // MARK: Displacing

    /// Frees a slot for a session with a `run` call, if no slot is free. At most one session releases its slot.
    private mutating func makeRoom(for index: Int) {
        let session = sessions[index]
        guard canStartIfSlotIsFree(session) else { return }
        let ofAccount = sessions.filter { $0.account == session.account }
        let allClaims = claims(among: sessions, excluding: session)
        let accountClaims = claims(among: ofAccount, excluding: session)
        let isAccountShort = accountClaims >= limit(ofAccount: session.account)
        guard isAccountShort || allClaims >= queueLimit else { return }
        guard allClaims - 1 < queueLimit, accountClaims - 1 < limit(ofAccount: session.account) else { return }
        let candidates = isAccountShort ? ofAccount : sessions
        let running = candidates.last { $0.state == .running && !$0.isEnding }
        let paused = candidates.last { $0.state == .paused && $0.holdsSlot && !$0.freesSlot }
        guard let victim = (running ?? paused).flatMap({ self.index(of: $0.id) }) else { return }
        sessions[victim].displacedBy = session.id
        if sessions[victim].state == .running {
            sessions[victim].state = .waiting
            requestStop(victim)
        }
    }

    /// Returns the number of slots that are in use, or that other sessions with the priority `now` will use.
    private func claims(among sessions: [ReferenceSession], excluding one: ReferenceSession) -> Int {
        sessions.count { $0.holdsSlot && !$0.freesSlot }
            + sessions.count { $0.id != one.id && $0.startPriority == .now && canStartIfSlotIsFree($0) }
    }

    /// Ends the displacement of all sessions that `preemptor` displaced, so they can resume.
    mutating func restoreDisplaced(by preemptor: SessionID) {
        for index in sessions.indices where sessions[index].displacedBy == preemptor {
            sessions[index].displacedBy = nil
            let priority = sessions[index].startPriority
            if sessions[index].state == .waiting, priority.rawValue > ReferenceSession.StartPriority.released.rawValue {
                sessions[index].startPriority = .released
            }
        }
    }
}
