import TransferCore

extension Scheduler {
    /// Adds new sessions to the order at an index, or at the end if the index is nil. Does not add duplicates of existing sessions.
    ///
    /// - Throws: ``QueueError`` with the code `staleOrder`, `indexOutOfRange`, `noSuchAccount`, `noSuchSession`, `impossibleOrder` or
    ///   `invalidRequest`; or the error of an invalid draft (``SessionDraft/refusal``).
    mutating func enqueue(
        _ drafts: [SessionDraft], at index: Int?, expecting orderRevision: UInt64?, isHeld: Bool, _ now: DualInstant,
        _ transaction: inout Transaction
    ) throws(QueueError) {
        // Find duplicates before checking the order's revision. If the caller repeats a call, the first call has changed the order, but the
        // repeated call must still return the sessions of the first call.
        let added = try withoutDuplicates(drafts, &transaction)
        guard !added.isEmpty || drafts.isEmpty else { return }
        let index = index ?? sessionIndex.count
        try checkOrder(index, orderRevision)
        guard (0...sessionIndex.count).contains(index) else {
            throw QueueError(
                .indexOutOfRange, "Cannot insert a session at index \(index): the queue has \(sessionIndex.count) sessions.")
        }
        guard !added.isEmpty else { return }
        let ranks = makeRoom(for: added.count, at: index)
        mutateFlags { $0.isIdleAnnounced = false }
        changeOrder(&transaction, .added(added.map(\.id), index: index))
        try insert(added, ranks: ranks, isHeld ? .held : .waiting, now, &transaction)
        if index < sessionIndex.count - added.count { putBeforeInterrupted(rank: ranks[0], &transaction) }
    }

    mutating func saveDrafts(
        _ drafts: [SessionDraft], _ now: DualInstant, _ transaction: inout Transaction
    ) throws(QueueError) {
        guard !drafts.isEmpty else { return }
        for draft in drafts { if let refusal = draft.refusal { throw refusal } }
        transaction.result.sessions = drafts.map(\.id)
        try insert(drafts, ranks: Array(repeating: 0, count: drafts.count), .draft, now, &transaction)
        transaction.events.append(.changed(drafts.map(\.id), .draft))
    }

    private mutating func insert(
        _ added: [SessionDraft], ranks: [Int64], _ state: SessionState, _ now: DualInstant, _ transaction: inout Transaction
    ) throws(QueueError) {
        let firstKey = flags.nextSession
        mutateFlags { $0.nextSession += SessionKey(added.count) }
        var sessions = NewSessions(drafts: added, createdAt: now.date)
        var account: (name: String, key: AccountKey)?
        for (offset, draft) in added.enumerated() {
            guard sessionIndex.key(of: draft.id) == nil else {
                throw QueueError(.invalidRequest, "The session \(draft.id) already exists.")
            }
            if account?.name != draft.account { account = (draft.account, try accountKey(draft.account)) }
            guard let account else { continue }
            var entry = Entry(
                id: draft.id, key: firstKey + SessionKey(offset), rank: ranks[offset], account: account.key, state: state)
            if !draft.options.allowsExpensiveNetwork { entry.conditions.insert(.needsCheapNetwork) }
            if draft.progress?.isEmpty == false { entry.conditions.insert(.hasTransferred) }
            var details = EntryDetails()
            details.deduplicationKey = draft.deduplicationKey
            details.deadline = draft.options.deadline
            if let notBefore = draft.notBefore, notBefore > now.date {
                details.notBefore = notBefore
                entry.conditions.insert(.early)
            }
            insert(entry, details)
            sessions.append(entry, details)
        }
        transaction.writes.append(.insertSessions(sessions))
        for (offset, draft) in added.enumerated() {
            for progress in draft.progress ?? [] {
                transaction.writes.append(.file(firstKey + SessionKey(offset), position: progress.position, progress.event))
            }
        }
        for draft in added {
            guard let dependency = draft.dependency, let key = sessionIndex.key(of: draft.id) else { continue }
            try depend(key, on: dependency)
        }
        try checkForCycles(firstKey..<firstKey + SessionKey(added.count))
    }

    /// Removes duplicates: drafts whose deduplication key already belongs to an uncompleted session or to an earlier draft. A completed
    /// session makes a draft a duplicate only if ``SessionDraft/deduplicatesCompleted`` is true. For a duplicate, the transaction's result
    /// contains the session that the draft duplicates.
    private func withoutDuplicates(_ drafts: [SessionDraft], _ transaction: inout Transaction) throws(QueueError) -> [SessionDraft] {
        guard drafts.contains(where: { $0.deduplicationKey != nil }) else {
            transaction.result.sessions = drafts.map(\.id)
            return drafts
        }
        var added: [SessionDraft] = []
        // The earlier drafts of this call, by deduplication key.
        var earlier: [String: SessionID] = [:]
        // The original session of each duplicate, by the ID of the draft.
        var originals: [SessionID: SessionID] = [:]
        for draft in drafts {
            if let key = draft.deduplicationKey {
                if let id = earlier[key] ?? sessionIndex.session(deduplicatedBy: key, countsCompleted: draft.deduplicatesCompleted) {
                    _ = try accountKey(draft.account)
                    transaction.result.sessions.append(id)
                    originals[draft.id] = id
                    continue
                }
                earlier[key] = draft.id
            }
            if let refusal = draft.refusal { throw refusal }
            added.append(draft)
            transaction.result.sessions.append(draft.id)
        }
        for index in added.indices {
            if let other = added[index].dependency?.session, let id = originals[other] { added[index].dependency?.session = id }
        }
        return added
    }

    private mutating func depend(_ key: SessionKey, on dependency: SessionDependency) throws(QueueError) {
        guard let entry = sessionIndex[key], try isUnmet(dependency, of: entry) else { return }
        mutate(key) { entry, details in
            details.dependency = dependency
            entry.conditions.insert(.dependent)
        }
    }

    /// Whether a session would have to wait for a dependency.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession`, or `impossibleOrder` for a later session of a strict queue.
    func isUnmet(_ dependency: SessionDependency, of entry: Entry) throws(QueueError) -> Bool {
        guard let target = sessionIndex.key(of: dependency.session).flatMap({ sessionIndex[$0] }) else {
            throw QueueError(.noSuchSession, "A session depends on the session \(dependency.session), which does not exist.")
        }
        if target.state == .completed || (dependency.acceptsAnyEnd && target.state.isEnded && !target.conditions.contains(.stopping)) {
            return false
        }
        if settings.ordering == .strict, target.isOrdered, entry.isOrdered, target.rank > entry.rank {
            throw QueueError(
                .impossibleOrder,
                "In a strict queue a session can't depend on a later one: \(entry.id) depends on \(dependency.session).")
        }
        return true
    }

    /// Checks that no new session depends on itself, directly or through other sessions. Existing sessions can't depend on a new session.
    private func checkForCycles(_ new: Range<SessionKey>) throws(QueueError) {
        // For each visited session, the first session of the walk that visited it.
        var walks: [SessionKey: SessionKey] = [:]
        for start in new {
            var next: SessionKey? = start
            while let key = next, new.contains(key) {
                if let walk = walks[key] {
                    guard walk != start else {
                        let ids = [sessionIndex[key]?.id, sessionIndex.details(key).dependency?.session].compactMap { $0.map { "\($0)" } }
                        throw QueueError(
                            .impossibleOrder, "These sessions are part of a dependency cycle: \(ids.joined(separator: " and ")).")
                    }
                    break
                }
                walks[key] = start
                next = sessionIndex.details(key).dependency.flatMap { sessionIndex.key(of: $0.session) }
            }
        }
    }

    mutating func add(_ progress: [FileProgress], to reference: SessionReference, _ transaction: inout Transaction) throws(QueueError) {
        let key = try resolve(reference)
        guard let entry = sessionIndex[key] else { return }
        guard entry.state == .draft else { throw invalidTransition(entry, "given the progress of another queue") }
        mutate(key) { entry, _ in entry.conditions.insert(.hasTransferred) }
        transaction.writes += progress.map { .file(key, position: $0.position, $0.event) }
    }

    mutating func add(_ items: [ItemDraft], to reference: SessionReference, _ transaction: inout Transaction) throws(QueueError) {
        let key = try resolve(reference)
        guard let entry = sessionIndex[key] else { return }
        guard !entry.state.isEnded else { throw invalidTransition(entry, "extended") }
        guard !items.isEmpty else { throw QueueError(.invalidRequest, "No items to add to the session \(entry.id). Add at least one.") }
        mutate(key) { entry, details in
            if details.run != 0 { entry.conditions.insert(.hasNewItems) }
        }
        transaction.writes.append(.addItems(key, items))
        if sessionIndex.live.contains(key) {
            transaction.actions.append(.grow(key, ItemFigures(items)))
        }
        transaction.events.append(.updated(entry.id))
        transaction.result.sessions = [entry.id]
    }
}
