import SystemPackage
import TransferCore
import TransferKit

/// The checks of remote names. Like a local queue, a fleet rejects sessions whose files would replace each other at the server.
extension Fleet {
    private var hasNames: Bool { transports.values.contains { $0 is any FileNaming } }

    /// Rejects drafts whose remote names clash; see ``NameCheck``. Ignores drafts whose account does not exist or can't be read.
    ///
    /// - Returns: The drafts. If the names of a draft with a deduplication key clash, sets `refusal` of the draft instead of throwing the
    ///   error, because the draft may turn out to be a duplicate.
    func checkNames(of drafts: [SessionDraft]) async throws -> [SessionDraft] {
        guard hasNames else { return drafts }
        let names = Set(drafts.filter { $0.direction == .upload }.map(\.account))
        guard !names.isEmpty else { return drafts }
        let accounts = try await store.unlocked { link in
            let rows = try link.query(
                "SELECT name, definition FROM account WHERE name = ANY($1::text[])", [PostgresValue.array(Array(names))])
            var found: [String: Account] = [:]
            for row in rows {
                var problem: TransferError?
                found[try row.text(0)] = try row.readable(Account.self, 1, &problem)
            }
            return found
        }
        // The items are files and forms with absolute paths, so they need neither a base folder nor a spool.
        let check = NameCheck(transports: transports, folders: SourceFolders(base: nil, spool: "/"))
        return try await BlockingIO.run { () throws(QueueError) -> [SessionDraft] in
            var checked = drafts
            try check.check(&checked, accounts)
            return checked
        }
    }

    /// Whether an update can make the remote names of a session clash, for example because it changes the account or the overwrite policy.
    func mustCheckNames(after update: SessionUpdate) -> Bool { hasNames && update.changesRequirements }

    /// Rejects an update after which the remote names of a session clash; see ``NameCheck``. Ignores completed sessions, which can't be changed, and
    /// sessions that can't be read.
    func checkNames(of id: SessionID, after update: SessionUpdate) async throws {
        let stored = try await store.unlocked { link in
            var problem: TransferError?
            return try link.query(
                "SELECT draft FROM content JOIN session ON session.id = content.session WHERE session.id = $1 AND state <> 'completed'",
                ["\(id)"]
            ).first?.readable(SessionDraft.self, 0, &problem)
        }
        guard let stored else { return }
        var draft = stored
        update.apply(to: &draft.options)
        if let account = update.account { draft.account = account }
        guard draft.options != stored.options || draft.account != stored.account else { return }
        _ = try await checkNames(of: [draft])
    }

    /// Returns the IDs of a group's sessions, for an operation. Omits failed and cancelled sessions that an update would make invalid.
    ///
    /// - Throws: ``/TransferKit/QueueError``, including the code `invalidRequest` if an update would make another session of the group invalid.
    func ids(in group: SessionGroup, for operation: SessionOperation) async throws -> [SessionID] {
        let sessions = try await sessions(in: group)
        guard case .update(let update) = operation, mustCheckNames(after: update) else { return sessions.map(\.id) }
        var ids: [SessionID] = []
        for session in sessions {
            do {
                // A session that a member has taken can't be changed, so its names need no check.
                if session.host == nil { try await checkNames(of: session.id, after: update) }
                ids.append(session.id)
            } catch let error as QueueError where error.code == .invalidRequest && [.failed, .cancelled].contains(session.state) {
                continue
            }
        }
        return ids
    }
}
