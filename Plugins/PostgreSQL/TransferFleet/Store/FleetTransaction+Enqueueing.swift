package import SystemPackage
package import TransferKit

extension FleetTransaction {
    /// The distance between the positions of sessions that are added at the end.
    static let positionGap: Int64 = 1 << 20

    /// Adds sessions. A session whose local files are all below shared folders can run on any member. A draft is a duplicate, and is not
    /// added, if an earlier draft in `drafts` or an existing session has the same deduplication key. A completed session makes a draft a
    /// duplicate only if the draft sets `deduplicatesCompleted`.
    ///
    /// - Parameter orderRevision: The revision that the order must have, unless all drafts are duplicates; nil to accept any order.
    /// - Returns: For each draft, the ID of the new session, or of the session that it duplicates.
    /// - Throws: A ``QueueError``; for an invalid draft that is not a duplicate, the draft's `refusal`.
    package func enqueue(
        _ drafts: [SessionDraft], at index: Int?, expecting orderRevision: UInt64? = nil, place: FleetPlace,
        sharedFolders: [FilePath] = [], isHeld: Bool
    ) throws -> [SessionID] {
        var ids: [SessionID] = []
        var added: [SessionDraft] = []
        for draft in drafts {
            try requireAccount(draft.account)
            if let original = try duplicate(of: draft, among: added) {
                ids.append(original)
            } else {
                if let refusal = draft.refusal { throw refusal }
                added.append(draft)
                ids.append(draft.id)
            }
        }
        guard !added.isEmpty else { return ids }
        try checkOrder(orderRevision)
        let count = try sessionCount()
        let index = index ?? count
        guard (0...count).contains(index) else {
            throw QueueError(.indexOutOfRange, "Cannot insert a session at index \(index): the fleet has \(count) sessions.")
        }
        let first = try index == count ? roomAtEnd(for: added.count) : makeRoom(for: added.count, at: index)
        let places = added.map { $0.isBelow(sharedFolders) ? .anywhere : place }
        try insert(added, from: first.position, step: first.step, places, isHeld: isHeld)
        adjustSessionCount(by: added.count)
        for draft in added { try storeDependency(of: draft) }
        try checkForCycles(added)
        try recordOrder(.added(added.map(\.id), index: index))
        return ids
    }

    /// Throws ``QueueError`` with the code `noSuchAccount` if there is no account with this name.
    package func requireAccount(_ name: String) throws {
        guard try link.query("SELECT 1 FROM account WHERE name = $1", [name]).first != nil else {
            throw QueueError(.noSuchAccount, "There is no account named \"\(name)\".")
        }
    }

    private func duplicate(of draft: SessionDraft, among added: [SessionDraft]) throws -> SessionID? {
        guard let key = draft.deduplicationKey else { return nil }
        if let earlier = added.first(where: { $0.deduplicationKey == key }) { return earlier.id }
        return try link.query(
            "SELECT id FROM session WHERE deduplication_key = $1 AND NOT is_removed AND (state <> 'completed' OR $2) ORDER BY state = 'completed'",
            [key, "\(draft.deduplicatesCompleted)"]
        ).first?.session(0)
    }

    private func insert(_ drafts: [SessionDraft], from position: Int64, step: Int64, _ places: [FleetPlace], isHeld: Bool) throws {
        for (offset, draft) in drafts.enumerated() {
            var stored = draft
            // The fleet itself handles these properties, so the queue of the member must not.
            (stored.notBefore, stored.dependency, stored.deduplicationKey, stored.deduplicatesCompleted) = (nil, nil, nil, false)
            let statistics = SessionStatistics(
                files: draft.items.count, bytesTotal: draft.items.reduce(0) { $0.addingReportingOverflow(max(0, $1.size)).partialValue },
                filesUnsized: draft.items.count { $0.isUnsized })
            do {
                try link.query(
                    """
                    INSERT INTO session(id, position, account, place, state, not_before, deduplication_key, statistics)
                    VALUES ($1, $2, $3, $4, $5, to_timestamp($6), $7, $8)
                    """,
                    [
                        "\(draft.id)", "\(position + Int64(offset) * step)", draft.account, places[offset].stored,
                        isHeld ? "held" : "waiting", PostgresValue.date(draft.notBefore), draft.deduplicationKey,
                        try PostgresValue.json(statistics),
                    ])
            } catch let error as PostgresError where error.isDuplicate {
                throw QueueError(.invalidRequest, "The session \(draft.id) already exists.")
            }
            try link.query("INSERT INTO content(session, draft) VALUES ($1, $2)", ["\(draft.id)", try PostgresValue.json(stored)])
            try setTags(draft.tags, of: draft.id)
        }
    }

    func setTags(_ tags: [String], of id: SessionID) throws {
        for tag in Set(tags).sorted() {
            try link.query("INSERT INTO session_tag(tag, session) VALUES ($1, $2)", [tag, "\(id)"])
        }
    }

    private func storeDependency(of draft: SessionDraft) throws {
        guard let dependency = draft.dependency, try isUnmet(dependency) else { return }
        try link.query(
            "UPDATE session SET after_id = $2, after_any = $3 WHERE id = $1",
            ["\(draft.id)", "\(dependency.session)", "\(dependency.acceptsAnyEnd)"])
    }

    /// Whether a session with this dependency must wait.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession`.
    func isUnmet(_ dependency: SessionDependency) throws -> Bool {
        let row = try link.query(
            "SELECT state, owner IS NULL FROM session WHERE id = $1 AND NOT is_removed", ["\(dependency.session)"]
        ).first
        guard let row else {
            throw QueueError(.noSuchSession, "A session depends on the session \(dependency.session), which does not exist.")
        }
        let state = try row.text(0)
        // The member of a cancelled session may still be sending.
        let hasEnded = try row.flag(1)
        return !hasEnded || state != "completed" && !(dependency.acceptsAnyEnd && ["failed", "cancelled"].contains(state))
    }

    /// Checks that no new session depends on itself through other sessions. Existing sessions can't depend on new ones, so only new
    /// sessions can form a cycle.
    private func checkForCycles(_ drafts: [SessionDraft]) throws {
        let next = Dictionary(drafts.map { ($0.id, $0.dependency?.session) }) { first, _ in first }
        for draft in drafts {
            var current = draft.dependency?.session
            var steps = 0
            while let id = current, steps <= drafts.count {
                guard id != draft.id else {
                    throw QueueError(
                        .impossibleOrder, "The session \(draft.id) would depend on itself, directly or through other sessions.")
                }
                current = next[id].flatMap(\.self)
                steps += 1
            }
        }
    }
}

extension SessionDraft {
    fileprivate func isBelow(_ folders: [FilePath]) -> Bool {
        let download = folder.map { FilePath(bytes: [UInt8]($0)).lexicallyNormalized() }
        return items.allSatisfy { item in
            let paths = item.form?.files.compactMap(\.path) ?? [item.source]
            return (download.map { [$0] } ?? paths.map { FilePath(bytes: [UInt8]($0)).lexicallyNormalized() }).allSatisfy { path in
                folders.contains { path.starts(with: $0) }
            }
        }
    }
}
