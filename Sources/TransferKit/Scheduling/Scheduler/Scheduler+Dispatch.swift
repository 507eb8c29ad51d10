import Foundation
import TransferCore

extension Scheduler {
    /// Does the work that is due now. Ends expired waits, releases dependents, and enforces the deadlines of sessions and of a drain. Then starts
    /// all sessions that can start, and removes completed sessions that the queue's retention no longer keeps.
    ///
    /// The writer calls this method once after it has passed all pending inputs to the scheduler.
    package mutating func schedule(at now: DualInstant) -> Transaction {
        var transaction = Transaction()
        recordOpening(now)
        wake(at: now)
        continueReleases(&transaction)
        enforceDeadlines(at: now, &transaction)
        scheduleDiskCheck(at: now)
        if flags.mode == .draining, let deadline = flags.drainDeadline, deadline <= now.uptime {
            interruptAll(&transaction)
            finishStoppingIfNoRuns(&transaction)
        }
        if flags.mode == .running {
            repeat {
                restoreDisplacedByBlocked(at: now, &transaction)
                while let key = next(at: now) { activate(key, at: now, &transaction) }
            } while resumeYielded(at: now)
            examineLines(at: now)
        }
        wakeSessionsShortOfSpace(at: now)
        retire(at: now, &transaction)
        let isIdle = isIdle(at: now)
        if flags.isIdleAnnounced != isIdle {
            mutateFlags { $0.isIdleAnnounced = isIdle }
            if isIdle { transaction.events.append(.queueBecameIdle) }
        }
        flush(into: &transaction)
        return transaction
    }

    /// The maximum number of sessions that one transaction changes or removes because a wait, a dependency, a deadline or a retention period
    /// has ended. The next transaction follows immediately and handles the rest.
    static let maximumPerTransaction = 10_000

    mutating func wake(at now: DualInstant) {
        sessionIndex.recallLines(by: now.uptime)
        var woken = 0
        while let first = sessionIndex.due.first, first.due <= now.uptime.nanoseconds, woken < Self.maximumPerTransaction {
            _ = sessionIndex.due.popFirst()
            woken += 1
            let details = sessionIndex.details(first.key)
            if let retryAt = details.retryAt, retryAt.uptime.nanoseconds <= now.uptime.nanoseconds {
                mutate(first.key) { entry, details in
                    entry.conditions.subtract([.backoff, .unreadable])
                    details.retryAt = nil
                }
            }
            if let spaceCheckAt = details.spaceCheckAt, spaceCheckAt.nanoseconds <= now.uptime.nanoseconds {
                mutate(first.key) { entry, details in
                    entry.conditions.subtract([.noSpace, .spaceReleased])
                    details.spaceCheckAt = nil
                    details.shortage = nil
                }
            }
        }
        while let first = sessionIndex.dueDates.first, first.due <= now.date.milliseconds, woken < Self.maximumPerTransaction {
            _ = sessionIndex.dueDates.popFirst()
            woken += 1
            guard let notBefore = sessionIndex.details(first.key).notBefore, notBefore.milliseconds <= now.date.milliseconds else {
                continue
            }
            mutate(first.key) { entry, details in
                entry.conditions.remove(.early)
                details.notBefore = nil
            }
        }
    }

    private mutating func next(at now: DualInstant) -> SessionKey? {
        guard slotsInUse < maxConcurrentSessions else { return nil }
        return firstInLine(at: now)
    }

    /// The first session that can start if the queue has a free slot; nil if no session can start. Sets aside lines
    /// (``SessionIndex/LineKey``) whose sessions can't start.
    private mutating func firstInLine(at now: DualInstant) -> SessionKey? {
        guard permitsStarts else { return nil }
        while let (line, entry) = sessionIndex.firstInLine() {
            if settings.ordering == .strict, entry.startPriority != .now { break }
            guard hasSlot(line.account) else {
                sessionIndex.heads.setAside(line, .noSlot)
                continue
            }
            if examine(line, at: now) { return entry.key }
        }
        guard settings.ordering == .strict else { return nil }
        return strictTurns.first { $0.isEligible && hasSlot($0.account) && ability(of: $0, at: now).isAble }?.key
    }

    /// Sets a line aside if none of its sessions can start now, even with a free slot.
    ///
    /// - Returns: Whether sessions of the line can start now if they get a slot.
    @discardableResult
    private mutating func examine(_ line: SessionIndex.LineKey, at now: DualInstant) -> Bool {
        switch ability(of: line, at: now) {
        case .able: return true
        case .unavailable(let until?) where canStartEventually(line, at: now): sessionIndex.heads.setAside(line, .time(until))
        case .unavailable, .blocked, .transportMissing, .networkConstrained, .diskBelowFloor, .runsNotEnded:
            sessionIndex.heads.setAside(line, .event)
        }
        return false
    }

    private static let maximumExamined = 1_000

    /// Examines the lines that were added or recalled, even if the queue has no free slot. Each change of a line costs one examination here. In
    /// return, ``isIdle(at:)`` and ``why(_:at:)`` need not visit the lines that can't start.
    private mutating func examineLines(at now: DualInstant) {
        guard permitsStarts else { return }
        for line in sessionIndex.heads.takeUnexamined(Self.maximumExamined) { examine(line, at: now) }
        // Removes replaced heads from the front, so that the first head is the current head of a line.
        _ = sessionIndex.firstInLine()
    }

    // MARK: Strict order

    /// The sessions that the order of a strict queue permits to start now: usually only the first unfinished session. Sessions with
    /// the start priority `now` start regardless of this order, so they need not be included.
    ///
    /// While the first session waits for space, waiting sessions that have begun (``Entry/Conditions/begun``) may start, too, because they
    /// may occupy this space.
    var strictTurns: [Entry] {
        guard let first = sessionIndex.unfinished.first.flatMap({ sessionIndex[$0] }) else { return [] }
        guard first.waitsForSpace else { return [first] }
        return [first] + sessionIndex.begun.compactMap { sessionIndex[$0] }.filter { $0.key != first.key }
    }

    /// Whether the order of the queue permits a session to start now.
    func hasTurn(_ entry: Entry) -> Bool {
        guard settings.ordering == .strict, entry.startPriority != .now else { return true }
        guard let first = sessionIndex.unfinished.first else { return false }
        return first == entry.key || entry.conditions.contains(.begun) && sessionIndex[first]?.waitsForSpace == true
    }

    private mutating func activate(_ key: SessionKey, at now: DualInstant, _ transaction: inout Transaction) {
        guard let entry = sessionIndex[key] else { return }
        let isRequested = entry.startPriority == .now
        // In whole milliseconds, as in the database.
        let start = Date(milliseconds: steadyDate(at: now).milliseconds)
        mutate(key) { entry, details in
            details.deadlineFrom = details.deadlineFrom ?? start
            entry.state = .running
            entry.startPriority = .none
            entry.conditions.insert(.begun)
            details.mark = 0
        }
        mutateFlags { $0.isIdleAnnounced = false }
        transaction.writes.append(.beginSession(key, now.date))
        transaction.events += [.willActivate(entry.id), .didActivate(entry.id)]
        beginRun(key, isRequested: isRequested, at: now, &transaction)
        // Sessions that yielded wait until another session starts. This session has now started.
        for yielded in sessionIndex.yielded.sorted() where yielded != key { endYield(of: yielded) }
    }

    /// Begins a run of a session that holds a slot.
    ///
    /// - Parameter isRequested: Whether the app requested the run; false if the queue chose the session.
    mutating func beginRun(_ key: SessionKey, isRequested: Bool, at now: DualInstant, _ transaction: inout Transaction) {
        guard let entry = sessionIndex[key], let account = accounts[entry.account]?.account else { return }
        let run = flags.lastRun + 1
        mutateFlags {
            $0.lastRun = run
            $0.isIdleAnnounced = false
            $0.runTimes.begin(run, at: now.uptime)
        }
        mutate(key) { entry, details in
            details.run = run
            details.runAgainMark = 0
            entry.conditions.subtract([.connected, .hasNewItems])
        }
        if case .able(let endpoint) = ability(of: entry, at: now) {
            mutateFlags { $0.health.begin(endpoint, run: run, at: now.uptime) }
        }
        transaction.events.append(.willStartRunning(entry.id))
        if isRequested { transaction.actions.append(.skipBackoff(key)) }
        transaction.actions.append(.run(key, entry.id, run: run, account))
    }

    // MARK: Sessions that yielded

    private mutating func endYield(of key: SessionKey) {
        mutate(key) { entry, details in
            entry.conditions.remove(.yielded)
            details.yieldedUntil = nil
        }
    }

    /// If no other session can start, ends the wait of sessions that yielded and whose delay is over. Sessions that wait only for a slot of
    /// the queue have precedence: until they start, sessions that yielded keep waiting.
    ///
    /// - Returns: Whether the wait of at least one session has ended.
    private mutating func resumeYielded(at now: DualInstant) -> Bool {
        // These checks come before the loop, because very many sessions may have yielded.
        guard !sessionIndex.yielded.isEmpty, sessionIndex.yieldsDue.first.map({ $0.due <= now.uptime.nanoseconds }) ?? false,
            firstInLine(at: now) == nil
        else { return false }
        var due: Set<SessionKey> = []
        while let first = sessionIndex.yieldsDue.first, first.due <= now.uptime.nanoseconds {
            _ = sessionIndex.yieldsDue.popFirst()
            if let until = sessionIndex.details(first.key).yieldedUntil, until <= now.uptime { due.insert(first.key) }
        }
        for key in due.sorted() { endYield(of: key) }
        return !due.isEmpty
    }

    // MARK: Retention

    /// Removes completed sessions that the queue's retention no longer keeps, the oldest first.
    private mutating func retire(at now: DualInstant, _ transaction: inout Transaction) {
        var retired: Set<SessionKey> = []
        let releasing = Set(flags.releases.map(\.session))
        let present = steadyDate(at: now)
        while let first = sessionIndex.ends.first {
            guard let end = sessionIndex.details(first.key).keptSince, end.milliseconds == first.due, !retired.contains(first.key) else {
                _ = sessionIndex.ends.popFirst()
                continue
            }
            let isOver =
                switch retention {
                case .keepAll: false
                case .count(let count): (sessionIndex.counts[.completed] ?? 0) - retired.count > count
                case .age(let age): end + age <= present
                }
            // Keep the session until all sessions that depend on it have been released.
            if let id = sessionIndex[first.key]?.id, releasing.contains(id) { break }
            guard isOver, retired.count < Self.maximumPerTransaction else { break }
            _ = sessionIndex.ends.popFirst()
            retired.insert(first.key)
        }
        guard !retired.isEmpty else { return }
        var removal = Transaction()
        // A forced removal does not throw. The dependencies on these sessions were satisfied when the sessions completed.
        try? remove(retired.sorted(), isForced: true, &removal)
        transaction.append(removal)
    }
}
