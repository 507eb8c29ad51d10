import TransferCore

/// Drafts: sessions that are stored, but not in the order of the queue.
extension Scheduler {
    /// Adds drafts consecutively to the order of the queue. Skips sessions of a group that are not drafts, or that would be duplicates.
    mutating func enqueueDrafts(
        _ keys: [SessionKey], isGroup: Bool, to destination: MoveDestination, isHeld: Bool, _ transaction: inout Transaction
    ) throws(QueueError) {
        let index = try insertionIndex(for: destination)
        var added: [Entry] = []
        var deduplicationKeys: Set<String> = []
        for key in keys {
            guard let entry = sessionIndex[key] else { continue }
            do throws(QueueError) {
                guard entry.state == .draft else { throw invalidTransition(entry, "enqueued", " Only a draft can be enqueued.") }
                try checkDuplicate(of: entry, "enqueue")
                if let key = sessionIndex.details(key).deduplicationKey, !deduplicationKeys.insert(key).inserted { continue }
                added.append(entry)
            } catch {
                if !isGroup { throw error }
            }
        }
        guard !added.isEmpty else { return }
        let ranks = makeRoom(for: added.count, at: index)
        mutateFlags { $0.isIdleAnnounced = false }
        let ids = added.map(\.id)
        changeOrder(&transaction, .added(ids, index: index))
        for (entry, rank) in zip(added, ranks) {
            mutate(entry.key) { entry, _ in
                entry.rank = rank
                entry.state = isHeld ? .held : .waiting
            }
        }
        transaction.result.sessions = ids
        if index < sessionIndex.count - added.count { putBeforeInterrupted(rank: ranks[0], &transaction) }
        try checkDependencies(of: added.map(\.key))
    }

    /// The index at which a destination inserts sessions.
    private func insertionIndex(for destination: MoveDestination) throws(QueueError) -> Int {
        switch destination {
        case .front: return 0
        case .end: return sessionIndex.count
        case .before(let id): return try index(of: id)
        case .after(let id): return try index(of: id) + 1
        case .index(let index, let expected):
            try checkOrder(index, expected)
            guard (0...sessionIndex.count).contains(index) else {
                throw QueueError(
                    .indexOutOfRange, "Cannot insert a session at index \(index): the queue has \(sessionIndex.count) sessions.")
            }
            return index
        }
    }

    /// The index of a session.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession`, or `invalidTransition` for a draft.
    func index(of id: SessionID) throws(QueueError) -> Int {
        let key = try resolve(.id(id))
        guard let index = sessionIndex.index(of: key) else {
            throw QueueError(.invalidTransition, "The session \(id) is a draft, so it has no position in the queue. Enqueue it first.")
        }
        return index
    }

    /// Removes drafts from the keys.
    ///
    /// - Throws: ``QueueError`` with the code `invalidTransition` if `isGroup` is false and the session is a draft.
    func withoutDrafts(_ keys: [SessionKey], isGroup: Bool, _ operation: SessionOperation) throws(QueueError) -> [SessionKey] {
        if !isGroup, let entry = keys.first.flatMap({ sessionIndex[$0] }), !entry.isOrdered {
            throw invalidTransition(entry, operation.participle)
        }
        return keys.filter { sessionIndex[$0]?.isOrdered == true }
    }

    /// Checks that no other uncompleted session has the same deduplication key.
    ///
    /// - Parameter verb: The verb phrase for the message, for example "enqueue".
    func checkDuplicate(of entry: Entry, _ verb: String) throws(QueueError) {
        guard let key = sessionIndex.details(entry.key).deduplicationKey, let id = sessionIndex.session(deduplicatedBy: key), id != entry.id
        else { return }
        throw QueueError(
            .duplicate, "Cannot \(verb) the session \(entry.id): session \(id) has the same deduplication key and is not completed.")
    }
}
