import TransferCore

extension Scheduler {
    // MARK: Removing

    /// Removes sessions, and releases their dependents: the sessions that depend on the removed sessions. If there are very many dependents,
    /// the next transactions release the rest. If the process is killed first, the next opening of the queue does so.
    ///
    /// - Throws: ``QueueError`` with the code `hasDependents` if other sessions depend on one of the sessions, unless `isForced` is true.
    mutating func remove(_ keys: [SessionKey], isForced: Bool, _ transaction: inout Transaction) throws(QueueError) {
        guard !keys.isEmpty else { return }
        if !isForced { try checkDependents(of: keys) }
        let ids = keys.compactMap { sessionIndex[$0]?.id }
        removeEntries(keys, &transaction)
        // A removed session is one row, and a pending release of its dependents is another.
        changedRows += 2 * keys.count
        for id in ids { satisfyDependents(of: id, isCompleted: true) }
    }

    /// Removes sessions from the queue, but keeps the dependencies of other sessions on the removed sessions.
    private mutating func removeEntries(_ keys: [SessionKey], _ transaction: inout Transaction) {
        let removals = keys.compactMap { key in sessionIndex.index(of: key).map { (index: $0, key: key) } }.sorted { $0.index < $1.index }
        let ids = removals.compactMap { sessionIndex[$0.key]?.id }
        let drafts = Set(keys).intersection(sessionIndex.drafts).sorted()
        let draftIDs = drafts.compactMap { sessionIndex[$0]?.id }
        for key in removals.map(\.key) + drafts {
            guard let entry = sessionIndex[key] else { continue }
            let run = sessionIndex.details(key).run
            if run != 0 {
                mutateFlags { $0.removedRuns[run] = entry.account }
                if !entry.conditions.contains(.stopping) { transaction.actions.append(.interrupt(key, run: run)) }
                stopRunningEvents(entry, &transaction)
            }
            if entry.holdsSlot { transaction.events += [.willDeactivate(entry.id), .didDeactivate(entry.id)] }
            restoreDisplaced(of: key, &transaction)
            transaction.writes.append(.deleteSession(key, isRunning: run != 0))
            transaction.actions.append(.forget(key))
        }
        for key in removals.map(\.key) + drafts { removeEntry(key) }
        if !ids.isEmpty { changeOrder(&transaction, .removed(ids, indices: removals.map(\.index))) }
        if !draftIDs.isEmpty { transaction.events.append(.draftsRemoved(draftIDs)) }
        transaction.result.sessions = ids + draftIDs
    }

    /// Removes a session like ``remove(_:isForced:_:)``, but keeps its unfinished uploads and part files, because another queue resumes the
    /// session.
    ///
    /// - Throws: ``QueueError`` with the code `invalidTransition` if a run of the session has not ended.
    mutating func withdraw(_ key: SessionKey, _ transaction: inout Transaction) throws(QueueError) {
        guard let entry = sessionIndex[key] else { return }
        guard sessionIndex.details(key).run == 0 else { throw invalidTransition(entry, "withdrawn") }
        guard !entry.conditions.contains(.runNotEnded) else {
            throw QueueError(
                .invalidTransition,
                "The last run of the session \(entry.id) has not ended, so the run may still send data. "
                    + "A disk, a network share or a transport is not responding.")
        }
        transaction.writes.append(.dropCheckpoints(key))
        try remove([key], isForced: true, &transaction)
    }

    func checkDependents(of keys: [SessionKey]) throws(QueueError) {
        let removed = Set(keys)
        for key in keys {
            guard let id = sessionIndex[key]?.id else { continue }
            let waiting = sessionIndex.dependents[id, default: []].subtracting(removed).count
            guard waiting == 0 else {
                throw QueueError(
                    .hasDependents,
                    "Cannot remove the session \(id): \(waiting == 1 ? "1 session depends" : "\(waiting) sessions depend") on it.")
            }
        }
    }

    /// Quarantines sessions that can't be read, or whose changes the database rejects: removes them from the queue, but keeps their rows.
    /// Holds waiting sessions that depend on them.
    mutating func quarantine(_ keys: [SessionKey], _ reason: String, _ transaction: inout Transaction) throws(QueueError) {
        let held = keys.compactMap { sessionIndex[$0]?.id }.flatMap { holdDependents(of: $0, leavingOut: Set(keys), &transaction) }
        removeEntries(keys, &transaction)
        transaction.writes.removeAll { if case .deleteSession = $0 { true } else { false } }
        transaction.writes += keys.map { .quarantine($0, reason) }
        transaction.actions.append(.keepStreams(transaction.result.sessions))
        transaction.events.append(.quarantined(reason))
        if !held.isEmpty { transaction.events.append(.changed(held, .held)) }
    }

    // MARK: Dependents

    /// Releases the dependents that accept the outcome of an ended or removed session. If there are very many dependents, the next
    /// transactions release the rest. If the process is killed first, the next opening of the queue does so.
    ///
    /// - Parameter isCompleted: Whether the session completed or was removed, which releases all its dependents. If false, only the dependents
    ///   that accept any end are released.
    mutating func satisfyDependents(of id: SessionID, isCompleted: Bool) {
        for key in sessionIndex.dependents[id, default: []].sorted() {
            guard let dependency = sessionIndex.details(key).dependency, isCompleted || dependency.acceptsAnyEnd else { continue }
            guard changedRows < Self.maximumPerTransaction else {
                return mutateFlags { $0.releases.append(PendingRelease(session: id, isCompleted: isCompleted)) }
            }
            changedRows += 1
            dropDependency(key)
        }
    }

    /// Removes the dependencies on a session whose outcome is unknown, and holds the dependents that are waiting. If there are very many
    /// dependents, the next transactions hold the rest. If the process is killed first, the next opening of the queue does so, because the
    /// session is missing from the queue.
    ///
    /// - Returns: The sessions that were waiting and are now held.
    mutating func holdDependents(
        of id: SessionID, leavingOut others: Set<SessionKey> = [], _ transaction: inout Transaction
    ) -> [SessionID] {
        var held: [SessionID] = []
        for key in sessionIndex.dependents[id, default: []].subtracting(others).sorted() {
            guard changedRows < Self.maximumPerTransaction else {
                mutateFlags { $0.releases.append(PendingRelease(session: id, isCompleted: nil)) }
                break
            }
            changedRows += 1
            dropDependency(key)
            guard let entry = sessionIndex[key], entry.state == .waiting else { continue }
            restoreDisplaced(of: key, &transaction)
            mutate(key) { entry, details in
                entry.state = .held
                Self.clearStartPriority(&entry, &details)
            }
            held.append(entry.id)
        }
        return held
    }

    /// Releases or holds more dependents of sessions that have ended or are missing.
    mutating func continueReleases(_ transaction: inout Transaction) {
        guard !flags.releases.isEmpty, changedRows < Self.maximumPerTransaction else { return }
        let releases = flags.releases
        mutateFlags { $0.releases = [] }
        for (index, release) in releases.enumerated() {
            guard changedRows < Self.maximumPerTransaction else {
                return mutateFlags { $0.releases += releases[index...] }
            }
            // A pending release is stored as one row.
            changedRows += 1
            if let isCompleted = release.isCompleted {
                satisfyDependents(of: release.session, isCompleted: isCompleted)
            } else {
                let held = holdDependents(of: release.session, &transaction)
                if !held.isEmpty { transaction.events.append(.changed(held, .held)) }
            }
        }
    }

    private mutating func dropDependency(_ key: SessionKey) {
        mutate(key) { entry, details in
            details.dependency = nil
            entry.conditions.remove(.dependent)
        }
    }
}

/// An ended, removed or missing session whose dependents have not all been released or held yet.
package struct PendingRelease: Sendable, Equatable {
    var session: SessionID
    /// Whether the session completed or was removed; nil if its outcome is unknown, so its dependents are held instead.
    var isCompleted: Bool?
}
