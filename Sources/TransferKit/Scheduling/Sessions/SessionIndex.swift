import Foundation

/// All sessions, in order, with indexes for frequent queries. Drafts are not in the order. Each change updates all indexes.
package struct SessionIndex: Sendable {
    package struct Slots: Sendable, Equatable {
        package var total = 0
        /// The number of slots in use that become free when the runs that use them end.
        var freed = 0
        /// The number of slots that paused sessions without a run keep.
        var paused = 0

        fileprivate mutating func add(_ entry: Entry, _ sign: Int) {
            guard entry.holdsSlot else { return }
            total += sign
            if entry.freesSlot { freed += sign }
            if entry.state == .paused, !entry.conditions.contains(.stopping) { paused += sign }
        }
    }

    private let isStrict: Bool
    private var keepsEnds: Bool
    private var table = SessionTable<Entry>()
    private var detailsByKey: [SessionKey: EntryDetails] = [:]
    package private(set) var order = RankedKeys()
    package private(set) var lines: [LineKey: Line] = [:]
    package private(set) var slots = Slots()
    private(set) var accountSlots: [AccountKey: Slots] = [:]
    private(set) var sessionsOfAccount: [AccountKey: Int] = [:]
    /// The number of sessions that wait only for a point in time, by the line that they will join. Contains no zeros.
    private(set) var timed: [LineKey: Int] = [:]
    private(set) var counts: [SessionState: Int] = [:]
    var heads = LineHeads()
    /// The sessions with a start priority, from all lines.
    private(set) var prioritized = PrioritizedKeys()
    /// Sessions with a run that has not ended.
    package private(set) var live: Set<SessionKey> = []
    private(set) var paused: Set<SessionKey> = []
    private(set) var drafts: Set<SessionKey> = []
    private(set) var claimants: Set<SessionKey> = []
    private(set) var interrupted: Set<SessionKey> = []
    private(set) var yielded: Set<SessionKey> = []
    /// The sessions that wait for space, and don't check the space again soon.
    private(set) var shortOfSpace: Set<SessionKey> = []
    /// The sessions that wait for space, and check it again soon.
    private(set) var recheckingSpace: Set<SessionKey> = []
    /// The sessions of each account that wait for a retry.
    private(set) var backoffs: [AccountKey: Set<SessionKey>] = [:]
    /// The displaced sessions, by the session that displaced them (the preemptor).
    private(set) var displacedByPreemptor: [SessionKey: Set<SessionKey>] = [:]
    private(set) var dependents: [SessionID: Set<SessionKey>] = [:]
    /// The uncompleted session of each deduplication key.
    private var uncompleted: [String: SessionKey] = [:]
    /// The completed sessions of each deduplication key.
    private var completed: [String: Set<SessionKey>] = [:]
    /// In a strict queue: all sessions that are neither completed, failed nor cancelled.
    private(set) var unfinished = RankedKeys()
    /// In a strict queue: the waiting sessions that have begun.
    private(set) var begun = RankedKeys()
    /// The times at which waits for a retry, for space (``Entry/waitsForSpace``), or after a yield end, in nanoseconds of uptime.
    package internal(set) var due = DueTimes()
    /// The times from which sessions that yielded may start again, in nanoseconds of uptime.
    var yieldsDue = DueTimes()
    /// The times before which sessions must not start, in milliseconds since 1970.
    package internal(set) var dueDates = DueTimes()
    /// The steady dates (``Scheduler/steadyDate(at:)``) at which deadlines pass, in milliseconds since 1970.
    var deadlines = DueTimes()
    /// The waiting and running sessions whose deadlines have passed.
    private(set) var overdue: Set<SessionKey> = []
    /// The steady dates at which completed sessions ended, in milliseconds since 1970. Empty if completed sessions are kept without limit.
    var ends = DueTimes()

    init(isStrict: Bool, keepsEnds: Bool) {
        self.isStrict = isStrict
        self.keepsEnds = keepsEnds
    }

    /// Sets whether ``ends`` contains the completed sessions. If the value changes to true, adds the sessions that have already completed.
    mutating func keepEnds(_ keepsEnds: Bool) {
        guard keepsEnds != self.keepsEnds else { return }
        self.keepsEnds = keepsEnds
        ends = DueTimes()
        guard keepsEnds else { return }
        for (key, details) in detailsByKey {
            if let keptSince = details.keptSince { ends.insert(due: keptSince.milliseconds, key: key) }
        }
    }

    package var count: Int { order.count }

    package subscript(key: SessionKey) -> Entry? { table[key] }

    package func details(_ key: SessionKey) -> EntryDetails { detailsByKey[key] ?? .none }

    /// The session that a request with this deduplication key duplicates: the uncompleted session with the key. Without one, and if
    /// `countsCompleted` is true, the newest completed session with the key. Nil if there is neither.
    func session(deduplicatedBy key: String, countsCompleted: Bool = false) -> SessionID? {
        (uncompleted[key] ?? (countsCompleted ? completed[key]?.max() : nil)).flatMap { self[$0]?.id }
    }

    package func key(of id: SessionID) -> SessionKey? { table.key(of: id) }

    package func index(of key: SessionKey) -> Int? {
        guard table[key]?.isOrdered == true else { return nil }
        return order.index(of: key, rank: ranks())
    }

    func standing(_ entry: Entry) -> Standing {
        Standing(startPriority: entry.startPriority, mark: details(entry.key).mark, rank: entry.rank)
    }

    /// Returns a function from keys to standings. The function retains the table. Release the function before the next change, which would
    /// otherwise copy the table.
    func standings() -> (SessionKey) -> Standing {
        { [table, detailsByKey] in
            let entry = table[$0]
            return Standing(startPriority: entry?.startPriority ?? .none, mark: detailsByKey[$0]?.mark ?? 0, rank: entry?.rank ?? 0)
        }
    }

    /// Returns a function from keys to ranks. Like the result of ``standings()``, it must be released before the next change.
    private func ranks() -> (SessionKey) -> Int64 {
        { [table] in table[$0]?.rank ?? 0 }
    }

    // MARK: Changes

    mutating func insert(_ entry: Entry, _ details: EntryDetails) {
        table.insert(entry)
        if details != .none { detailsByKey[entry.key] = details }
        if entry.isOrdered { putInOrder(entry.key) }
        addToIndexes(entry, details)
    }

    mutating func remove(_ key: SessionKey) {
        guard let entry = table[key] else { return }
        removeFromIndexes(entry, details(key))
        if entry.isOrdered { takeOutOfOrder(key) }
        detailsByKey[key] = nil
        table.remove(key)
    }

    mutating func change(_ entry: Entry, _ details: EntryDetails) {
        let key = entry.key
        guard let before = table[key] else { return }
        let detailsBefore = self.details(key)
        removeFromIndexes(before, detailsBefore)
        let isMoved = before.rank != entry.rank || before.isOrdered != entry.isOrdered
        if isMoved, before.isOrdered { takeOutOfOrder(key) }
        table.update(entry)
        detailsByKey[key] = details == .none ? nil : details
        if isMoved, entry.isOrdered { putInOrder(key) }
        addToIndexes(entry, details, replacing: detailsBefore)
    }

    /// Gives a session a different rank, without changing its position in the order.
    mutating func renumber(_ key: SessionKey, _ rank: Int64) {
        guard var entry = table[key] else { return }
        entry.rank = rank
        table.update(entry)
        if lines[entry.line]?.first == key { putHead(of: entry.line) }
    }

    private mutating func putInOrder(_ key: SessionKey) {
        let ranks = ranks()
        order.insert(key, rank: ranks)
    }

    private mutating func takeOutOfOrder(_ key: SessionKey) {
        let ranks = ranks()
        _ = order.remove(key, rank: ranks)
    }

    // MARK: Indexes

    /// Adds a session to all indexes.
    ///
    /// - Parameter before: The details before the change. The lists of due times still contain the earlier times, so unchanged times are
    ///   not added again.
    private mutating func addToIndexes(_ entry: Entry, _ details: EntryDetails, replacing before: EntryDetails = .none) {
        count(entry, details, 1)
        let key = entry.key
        if details.run != 0 { live.insert(key) }
        if entry.state == .paused { paused.insert(key) }
        if entry.state == .draft { drafts.insert(key) }
        if entry.isClaimant { claimants.insert(key) }
        if entry.state == .waiting, entry.startPriority == .interrupted { interrupted.insert(key) }
        if entry.conditions.contains(.yielded) { yielded.insert(key) }
        if entry.waitsForReleasedSpace { shortOfSpace.insert(key) } else if entry.waitsForSpace { recheckingSpace.insert(key) }
        if details.isOverdue, entry.state == .waiting || entry.state == .running { overdue.insert(key) }
        if entry.conditions.contains(.backoff) { backoffs[entry.account, default: []].insert(key) }
        if let preemptor = details.displacedBy { displacedByPreemptor[preemptor, default: []].insert(key) }
        if let dependency = details.dependency { dependents[dependency.session, default: []].insert(key) }
        // The deduplication key of a draft has no effect until the draft is enqueued.
        if let deduplicationKey = details.deduplicationKey, entry.isOrdered {
            if entry.state == .completed {
                completed[deduplicationKey, default: []].insert(key)
            } else {
                uncompleted[deduplicationKey] = key
            }
        }
        addDueTimes(of: key, details, replacing: before)
        if isStrict, !entry.state.isEnded, entry.isOrdered {
            let ranks = ranks()
            unfinished.insert(key, rank: ranks)
            if entry.state == .waiting, entry.conditions.contains(.begun) { begun.insert(key, rank: ranks) }
        }
        if entry.isEligible { addToLine(entry) }
    }

    private mutating func addDueTimes(of key: SessionKey, _ details: EntryDetails, replacing before: EntryDetails) {
        if let retryAt = details.retryAt, retryAt != before.retryAt { due.insert(due: retryAt.uptime.nanoseconds, key: key) }
        if let spaceCheckAt = details.spaceCheckAt, spaceCheckAt != before.spaceCheckAt {
            due.insert(due: spaceCheckAt.nanoseconds, key: key)
        }
        if let yieldedUntil = details.yieldedUntil, yieldedUntil != before.yieldedUntil {
            due.insert(due: yieldedUntil.nanoseconds, key: key)
            yieldsDue.insert(due: yieldedUntil.nanoseconds, key: key)
        }
        if let notBefore = details.notBefore, notBefore != before.notBefore { dueDates.insert(due: notBefore.milliseconds, key: key) }
        if let end = details.deadlineEnd, end != before.deadlineEnd { deadlines.insert(due: end, key: key) }
        if keepsEnds, let keptSince = details.keptSince, keptSince != before.keptSince {
            ends.insert(due: keptSince.milliseconds, key: key)
        }
    }

    /// Removes a session from all indexes, except from the lists of due times.
    private mutating func removeFromIndexes(_ entry: Entry, _ details: EntryDetails) {
        count(entry, details, -1)
        let key = entry.key
        if details.run != 0 { live.remove(key) }
        if entry.state == .paused { paused.remove(key) }
        if entry.state == .draft { drafts.remove(key) }
        if entry.isClaimant { claimants.remove(key) }
        if entry.state == .waiting, entry.startPriority == .interrupted { interrupted.remove(key) }
        if entry.conditions.contains(.yielded) { yielded.remove(key) }
        if entry.waitsForReleasedSpace { shortOfSpace.remove(key) } else if entry.waitsForSpace { recheckingSpace.remove(key) }
        if details.isOverdue { overdue.remove(key) }
        if entry.conditions.contains(.backoff) {
            backoffs[entry.account]?.remove(key)
            if backoffs[entry.account]?.isEmpty == true { backoffs[entry.account] = nil }
        }
        if let preemptor = details.displacedBy {
            displacedByPreemptor[preemptor]?.remove(key)
            if displacedByPreemptor[preemptor]?.isEmpty == true { displacedByPreemptor[preemptor] = nil }
        }
        if let dependency = details.dependency {
            dependents[dependency.session]?.remove(key)
            if dependents[dependency.session]?.isEmpty == true { dependents[dependency.session] = nil }
        }
        if let deduplicationKey = details.deduplicationKey, entry.isOrdered {
            if entry.state == .completed {
                completed[deduplicationKey]?.remove(key)
                if completed[deduplicationKey]?.isEmpty == true { completed[deduplicationKey] = nil }
            } else if uncompleted[deduplicationKey] == key {
                uncompleted[deduplicationKey] = nil
            }
        }
        if isStrict, !entry.state.isEnded, entry.isOrdered {
            let ranks = ranks()
            _ = unfinished.remove(key, rank: ranks)
            begun.remove(key, rank: ranks)
        }
        if entry.isEligible { removeFromLine(entry) }
    }

    private mutating func count(_ entry: Entry, _ details: EntryDetails, _ sign: Int) {
        slots.add(entry, sign)
        if entry.holdsSlot {
            accountSlots[entry.account, default: Slots()].add(entry, sign)
            recallLines(of: entry.account)
        }
        sessionsOfAccount[entry.account, default: 0] += sign
        counts[entry.shownState, default: 0] += sign
        guard entry.isTimed else { return }
        timed[entry.line, default: 0] += sign
        if timed[entry.line] == 0 { timed[entry.line] = nil }
        updateHeads(of: entry.line)
    }

    private mutating func addToLine(_ entry: Entry) {
        if entry.startPriority == .none {
            let ranks = ranks()
            lines[entry.line, default: Line()].inOrder.insert(entry.key, rank: ranks)
        } else {
            let standings = standings()
            lines[entry.line, default: Line()].prioritized.insert(entry.key, standing: standings)
            prioritized.insert(entry.key, standing: standings)
        }
        if lines[entry.line]?.first == entry.key { putHead(of: entry.line) }
    }

    private mutating func removeFromLine(_ entry: Entry) {
        let wasFirst = lines[entry.line]?.first == entry.key
        if entry.startPriority != .none {
            let standings = standings()
            lines[entry.line]?.prioritized.remove(entry.key, standing: standings)
            prioritized.remove(entry.key, standing: standings)
        } else {
            let ranks = ranks()
            _ = lines[entry.line]?.inOrder.remove(entry.key, rank: ranks)
        }
        if lines[entry.line]?.isEmpty == true {
            lines[entry.line] = nil
            updateHeads(of: entry.line)
        }
        if wasFirst { putHead(of: entry.line) }
    }

    // MARK: Loading

    mutating func reserveLoading(_ count: Int) {
        table.reserveLoading(count)
    }

    mutating func load(_ entry: Entry, _ details: EntryDetails?) {
        table.load(entry)
        if let details { detailsByKey[entry.key] = details }
    }

    /// Sorts and indexes all loaded sessions.
    ///
    /// - Returns: `renumbered` contains the sessions that got a higher rank, because the preceding session had the same or a higher rank.
    ///   `duplicates` contains the omitted sessions: an earlier session has the same key or ID.
    mutating func finishLoading() -> (renumbered: [SessionKey], duplicates: [SessionKey]) {
        let duplicates = table.finishLoading()
        for key in duplicates where table[key] == nil { detailsByKey[key] = nil }
        var renumbered: [SessionKey] = []
        var others: [Entry] = []
        var last = Int64.min
        var line: (key: LineKey, keys: RankedKeys)?
        var countsByLine: [LineKey: Int] = [:]
        var isDetailed = [Bool](repeating: false, count: table.count)
        for key in detailsByKey.keys { if let slot = table.slot(of: key) { isDetailed[slot] = true } }
        for slot in slotsByRank() {
            let slot = Int(slot)
            var entry = table.elements[slot]
            guard entry.isOrdered else {
                others.append(entry)
                continue
            }
            if entry.rank <= last {
                entry.rank = last + 1
                table.replace(slot: slot, with: entry)
                renumbered.append(entry.key)
            }
            last = entry.rank
            order.append(entry.key)
            // The usual case: the session only waits for its turn.
            guard entry.isEligible, entry.startPriority == .none, !isStrict, !isDetailed[slot] else {
                others.append(entry)
                continue
            }
            if line?.key != entry.line {
                if let line { lines[line.key, default: Line()].inOrder = line.keys }
                line = (entry.line, lines[entry.line]?.inOrder ?? RankedKeys())
                lines[entry.line] = nil
            }
            line?.keys.append(entry.key)
            countsByLine[entry.line, default: 0] += 1
        }
        if let line { lines[line.key, default: Line()].inOrder = line.keys }
        for (line, count) in countsByLine {
            putHead(of: line)
            sessionsOfAccount[line.account, default: 0] += count
            counts[.waiting, default: 0] += count
        }
        for entry in others { addToIndexes(entry, details(entry.key)) }
        return (renumbered, duplicates)
    }

    /// The table slots of all sessions, the lowest rank first.
    private func slotsByRank() -> [UInt32] {
        let elements = table.elements
        var slots = Array(0..<UInt32(elements.count))
        if !zip(elements, elements.dropFirst()).allSatisfy({ $0.rank < $1.rank }) {
            slots.sort {
                let (left, right) = (elements[Int($0)], elements[Int($1)])
                return (left.rank, left.key) < (right.rank, right.key)
            }
        }
        return slots
    }
}
