import TransferCore

extension Scheduler {
    // MARK: Resolving references

    func resolve(_ reference: SessionReference) throws(QueueError) -> SessionKey {
        switch reference {
        case .id(let id):
            guard let key = sessionIndex.key(of: id) else { throw QueueError(.noSuchSession, "There is no session \(id).") }
            return key
        case .index(let index, let expected):
            try checkOrder(index, expected)
            guard (0..<sessionIndex.count).contains(index) else {
                throw QueueError(.indexOutOfRange, "There is no session at index \(index): the queue has \(sessionIndex.count) sessions.")
            }
            return sessionIndex.order[index]
        }
    }

    /// Checks that the revision of the order to which an index refers is current.
    func checkOrder(_ index: Int, _ expected: UInt64?) throws(QueueError) {
        guard let expected, expected != flags.orderRevision else { return }
        throw QueueError(
            .staleOrder,
            "The index \(index) refers to revision \(expected) of the order, but the current revision is \(flags.orderRevision). Read the order again."
        )
    }

    /// The sessions of a group, in the order of the queue. Drafts follow, in the order in which they were saved. Only the group of all drafts
    /// and lists of IDs can contain drafts.
    func resolve(_ group: SessionGroup) throws(QueueError) -> [SessionKey] {
        switch group {
        case .all:
            return Array(sessionIndex.order)
        case .account(let name):
            let key = try accountKey(name)
            return sessionIndex.order.filter { sessionIndex[$0]?.account == key }
        case .state(.draft):
            return sessionIndex.drafts.sorted()
        case .state(let state):
            return sessionIndex.order.filter { sessionIndex[$0]?.shownState == state }
        case .tag(let tag):
            // Only the database contains tags. The sender of a command must look up the sessions of a tag before it sends the command.
            throw QueueError(
                .invalidRequest, "The command names the tag \"\(tag)\" instead of session IDs. This is a bug in TransferKit.")
        case .sessions(let ids):
            var keys: Set<SessionKey> = []
            for id in ids { keys.insert(try resolve(.id(id))) }
            let drafts = keys.intersection(sessionIndex.drafts)
            return keys.subtracting(drafts).sorted { (sessionIndex[$0]?.rank ?? 0) < (sessionIndex[$1]?.rank ?? 0) } + drafts.sorted()
        }
    }

    /// Whether a session that was found in a group by an earlier lookup still belongs to the group.
    func belongs(_ id: SessionID, to group: SessionGroup) -> Bool {
        guard let key = sessionIndex.key(of: id), let entry = sessionIndex[key] else { return false }
        return switch group {
        case .all, .sessions: true
        case .account(let name): accountKeys[name] == entry.account
        case .state(let state): entry.shownState == state
        case .tag(let tag): flags.newTags[key]?.contains(tag) ?? true
        }
    }

    // MARK: Order

    mutating func changeOrder(_ transaction: inout Transaction, _ event: QueueEvent.Kind) {
        mutateFlags { $0.orderRevision += 1 }
        let revision = flags.orderRevision
        transaction.events += [.willChangeQueue(orderRevision: revision), event, .didChangeQueue(orderRevision: revision)]
    }

    private func rank(at index: Int) -> Int64? {
        guard (0..<sessionIndex.count).contains(index) else { return nil }
        return sessionIndex[sessionIndex.order[index]]?.rank
    }

    /// Returns ranks for new sessions before the session at an index, or at the end. Renumbers nearby sessions if
    /// their ranks leave no room.
    mutating func makeRoom(for count: Int, at index: Int) -> [Int64] {
        if let ranks = Self.ranks(count, after: rank(at: index - 1), before: rank(at: index), minimumStep: 1) { return ranks }
        var reach = 32
        while true {
            let low = max(0, index - reach)
            let high = min(sessionIndex.count, index + reach)
            if let ranks = Self.ranks(high - low + count, after: rank(at: low - 1), before: rank(at: high), minimumStep: 1 << 10) {
                let keys = Array(sessionIndex.order.keys(in: low..<high))
                for (offset, key) in keys.enumerated() {
                    renumber(key, ranks[low + offset < index ? offset : offset + count])
                }
                return Array(ranks[(index - low)..<(index - low + count)])
            }
            reach *= 2
        }
    }

    /// Returns `count` evenly spaced ranks between two given ranks; nil if the distance between two neighbours would be smaller than `minimumStep`.
    /// If one of the given ranks is nil, there is always room.
    private static func ranks(_ count: Int, after low: Int64?, before high: Int64?, minimumStep: Int64) -> [Int64]? {
        let step: Int64
        let start: Int64
        switch (low, high) {
        case (let low?, let high?):
            step = min((high - low) / Int64(count + 1), rankGap)
            start = low
            guard step >= minimumStep else { return nil }
        case (let low?, nil): (start, step) = (low, rankGap)
        case (nil, let high?): (start, step) = (high - rankGap * Int64(count + 1), rankGap)
        case (nil, nil): (start, step) = (0, rankGap)
        }
        return (1...Int64(max(1, count))).map { start + step * $0 }
    }

    /// Removes the start priority of interrupted sessions with higher ranks than the given rank. Called after a session was placed at this
    /// rank, so that this session starts before the interrupted sessions. Also restores the sessions that the interrupted sessions displaced;
    /// otherwise, the displaced sessions would wait until the interrupted sessions have run.
    mutating func putBeforeInterrupted(rank: Int64, except moved: SessionKey? = nil, _ transaction: inout Transaction) {
        for key in sessionIndex.interrupted.sorted() where key != moved {
            guard let other = sessionIndex[key], other.rank > rank else { continue }
            mutate(key) { entry, _ in entry.startPriority = .none }
            restoreDisplaced(of: key, &transaction)
        }
    }

    // MARK: Moving

    mutating func move(_ keys: [SessionKey], to destination: MoveDestination, _ transaction: inout Transaction) throws(QueueError) {
        guard !keys.isEmpty else { return }
        var previous = try anchor(for: destination, moving: keys)
        for key in keys {
            if previous == key { continue }
            if try move(key, after: previous, &transaction), let id = sessionIndex[key]?.id { transaction.result.sessions.append(id) }
            previous = key
        }
    }

    /// The destination of the first moved session, in a form that does not depend on the number of moved sessions.
    ///
    /// - Throws: The errors that moving all sessions would throw.
    func resolveDestination(of keys: [SessionKey], movedTo destination: MoveDestination) throws(QueueError) -> MoveDestination {
        guard !keys.isEmpty else { return destination }
        let previous = try anchor(for: destination, moving: keys)
        try checkDependencies(of: keys, movedAfter: previous)
        return previous.flatMap { sessionIndex[$0]?.id }.map(MoveDestination.after) ?? .front
    }

    /// The session after which the first moved session is placed; nil for the front.
    private func anchor(for destination: MoveDestination, moving keys: [SessionKey]) throws(QueueError) -> SessionKey? {
        let moved = Set(keys)
        switch destination {
        case .front: return nil
        case .end: return last(before: sessionIndex.count, leavingOut: moved)
        case .index(let index, let expected):
            try checkOrder(index, expected)
            try checkRange(index, moving: keys.count)
            return lastUnmoved(ofFirst: index, leavingOut: moved)
        case .before(let id):
            return last(before: try index(of: id), leavingOut: moved)
        case .after(let id):
            let (key, index) = (try resolve(.id(id)), try index(of: id))
            return moved.contains(key) ? last(before: index, leavingOut: moved) : key
        }
    }

    private func checkRange(_ index: Int, moving count: Int) throws(QueueError) {
        guard (0...(sessionIndex.count - count)).contains(index) else {
            let moved = count == 1 ? "a session" : "\(count) sessions"
            throw QueueError(.indexOutOfRange, "Cannot move \(moved) to index \(index): the queue has \(sessionIndex.count) sessions.")
        }
    }

    /// The last session before an index, among the sessions that are not moved; nil if there is no such session.
    private func last(before index: Int, leavingOut moved: Set<SessionKey>) -> SessionKey? {
        var index = index - 1
        while index >= 0 {
            let key = sessionIndex.order[index]
            if !moved.contains(key) { return key }
            index -= 1
        }
        return nil
    }

    /// The session at index `count - 1` of the order without the moved sessions; nil if `count` is 0.
    private func lastUnmoved(ofFirst count: Int, leavingOut moved: Set<SessionKey>) -> SessionKey? {
        guard count > 0 else { return nil }
        // Skips the moved sessions before this session.
        var index = count - 1
        var skipped = 0
        let indices = moved.compactMap { sessionIndex.index(of: $0) }.sorted()
        for movedIndex in indices where movedIndex <= index + skipped { skipped += 1 }
        index += skipped
        return sessionIndex.order[index]
    }

    /// Moves a session so that it directly follows another session, or to the front if `previous` is nil.
    ///
    /// - Returns: Whether anything changed.
    private mutating func move(
        _ key: SessionKey, after previous: SessionKey?, _ transaction: inout Transaction
    ) throws(QueueError) -> Bool {
        guard let entry = sessionIndex[key], let from = sessionIndex.index(of: key) else { return false }
        var gap = 0
        if let previous, let index = sessionIndex.index(of: previous) { gap = index + 1 }
        guard gap != from, gap != from + 1 else { return false }
        let rank = makeRoom(for: 1, at: gap)[0]
        mutate(key) { entry, _ in entry.rank = rank }
        let to = gap > from ? gap - 1 : gap
        changeOrder(&transaction, .moved(entry.id, from: from, to: to))
        putBeforeInterrupted(rank: rank, except: key, &transaction)
        return true
    }

    /// Checks that no loaded session of a strict queue comes before a session on which it depends. Otherwise, the queue could never complete.
    package func checkAllDependencies() throws(QueueError) {
        try checkDependencies(of: sessionIndex.dependents.values.flatMap { $0 }.sorted())
    }

    /// Checks that sessions come after their dependencies, if the queue is strict.
    func checkDependencies(of keys: [SessionKey]) throws(QueueError) {
        guard settings.ordering == .strict else { return }
        for key in keys {
            for pair in dependencies(of: key) where pair.earlier.rank > pair.later.rank { throw impossibleOrder(pair.earlier, pair.later) }
        }
    }

    /// Like ``checkDependencies(of:)``, but checks the order that would result if these sessions were moved directly after `previous`, or
    /// to the front if `previous` is nil.
    private func checkDependencies(of keys: [SessionKey], movedAfter previous: SessionKey?) throws(QueueError) {
        guard settings.ordering == .strict else { return }
        let moved = Set(keys)
        let front = previous.flatMap { sessionIndex[$0]?.rank }
        /// 0, 1 or 2 for a session before, among, or after the moved sessions.
        func side(_ entry: Entry) -> Int {
            if moved.contains(entry.key) { return 1 }
            return front.map { entry.rank <= $0 } ?? false ? 0 : 2
        }
        for key in keys {
            for pair in dependencies(of: key)
            where (side(pair.earlier), pair.earlier.rank) > (side(pair.later), pair.later.rank) {
                throw impossibleOrder(pair.earlier, pair.later)
            }
        }
    }

    /// The dependencies that involve a session. In each pair, `later` depends on `earlier`.
    private func dependencies(of key: SessionKey) -> [(earlier: Entry, later: Entry)] {
        guard let entry = sessionIndex[key] else { return [] }
        var pairs = sessionIndex.dependents[entry.id, default: []].compactMap { sessionIndex[$0] }.map { (earlier: entry, later: $0) }
        let dependency = sessionIndex.details(key).dependency
        if let other = dependency.flatMap({ sessionIndex.key(of: $0.session) }).flatMap({ sessionIndex[$0] }) {
            pairs.append((other, entry))
        }
        // A draft has no position. The dependencies are checked when the draft is enqueued.
        return pairs.filter { $0.earlier.isOrdered && $0.later.isOrdered }
    }

    private func impossibleOrder(_ earlier: Entry, _ later: Entry) -> QueueError {
        QueueError(
            .impossibleOrder,
            "In a strict queue a session can't come before its dependency: \(later.id) depends on \(earlier.id).")
    }
}
