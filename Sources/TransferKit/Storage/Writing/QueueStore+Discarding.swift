package import Foundation
import GRDB
package import TransferCore

/// A pending removal of an unfinished upload, of a part file, or of content that a completed file left on a server.
package struct PendingDiscard: Sendable {
    package var key: Int64
    package var endpoint: Endpoint
    package var checkpoint: Checkpoint
    /// The number of failed attempts.
    package var attempts: Int
    /// The deadline, after which the queue abandons the removal.
    package var giveUpAt: Date
}

extension QueueStore {
    /// The age, in seconds, at which the queue abandons a removal. The content then stays, unless the server removes it automatically.
    private static let discardLifetime = 7.0 * 24 * 3_600

    /// Moves checkpoints of a removed session into the outbox, the stored list of pending removals (``DiscardQuery``).
    ///
    /// - Parameters:
    ///   - account: The definition of the session's account; see ``accountDefinition(of:at:in:)``.
    ///   - isHeld: Whether a run of the session could still complete the files. If so, no content is removed before that run has ended.
    ///   - limit: The maximum number of checkpoints.
    /// - Returns: The number of moved checkpoints. If this number is less than `limit`, the session has no more checkpoints.
    static func moveCheckpoints(
        of key: SessionKey, at account: String?, isHeld: Bool, limit: Int, _ now: Date, in db: Database
    ) throws -> Int {
        let rows = try firstCheckpoints(of: key, limit: limit, in: db)
        guard let last = rows.last else { return 0 }
        try discard(rows, of: key, at: account, isHeld: isHeld, now, in: db)
        try execute(db, "DELETE FROM checkpoint WHERE \(handledCheckpoints)", try end(last, of: key))
        return rows.count
    }

    private static func firstCheckpoints(of key: SessionKey, limit: Int, in db: Database) throws -> [StoredRow] {
        try StoredRow.fetchAll(
            db.cachedStatement(
                sql: "SELECT endpoint, data, confirmed, position FROM checkpoint WHERE session = ? ORDER BY position, endpoint LIMIT ?"),
            arguments: [key, max(0, limit)])
    }

    /// An SQL condition for the checkpoints of the session ?1 up to the position ?2 and the endpoint ?3.
    private static let handledCheckpoints = "checkpoint.session = ?1 AND (checkpoint.position, checkpoint.endpoint) <= (?2, ?3)"

    private static func end(_ last: StoredRow, of key: SessionKey) throws -> StatementArguments {
        StatementArguments([key.databaseValue, try last.value(atIndex: 3), try last.value(atIndex: 0)])
    }

    /// Moves checkpoints of a session that stays in the queue into the outbox, as many as the transaction may still move
    /// (``StoreTransaction/rowsToSweep``), possibly none. The files of these checkpoints get the next generation number, which is part of
    /// the names of their unfinished content. A late removal therefore can't delete the content of a later attempt. If checkpoints remain,
    /// a mark is stored, and ``DeferredDeletion`` or the next run of the session completes the move. A run completes it before it transfers
    /// a file.
    ///
    /// - Parameter account: The account with the endpoints of the checkpoints; nil for the session's account. If an earlier move for another
    ///   account is incomplete, that account applies instead.
    static func discardPartial(
        of key: SessionKey, at account: AccountKey? = nil, _ transaction: inout StoreTransaction, in db: Database
    ) throws {
        // A session in quarantine keeps its checkpoints.
        let isQueued = try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM schedule WHERE session = ?)"), arguments: [key])
        guard isQueued == true else { return try remove([.discard], of: key, in: db) }
        let limit = max(0, transaction.rowsToSweep)
        // One more row shows whether checkpoints remain.
        var rows = try firstCheckpoints(of: key, limit: limit + 1, in: db)
        let hasMore = rows.count > limit
        if hasMore { rows.removeLast() }
        transaction.rowsToSweep -= rows.count
        let owner = try discardedAccount(of: key, in: db) ?? account
        if let last = rows.last {
            try discard(
                rows, of: key, at: try accountDefinition(of: key, at: owner, in: db), isHeld: false, transaction.now, in: db)
            let end = try end(last, of: key)
            try execute(
                db,
                """
                UPDATE file SET generation = generation + 1
                WHERE session = ?1 AND position IN (SELECT DISTINCT position FROM checkpoint WHERE \(handledCheckpoints))
                """, end)
            try execute(db, "DELETE FROM checkpoint WHERE \(handledCheckpoints)", end)
        }
        guard hasMore else { return try remove([.discard], of: key, in: db) }
        // The mark contains the account of the checkpoints; 0 for the session's account.
        try set(.discard, to: Int64(owner ?? 0), of: key, in: db)
        transaction.leavesDeferredWork = true
    }

    /// The account of the checkpoints that an incomplete move has not moved yet; nil for the session's account, or if no move is incomplete.
    static func discardedAccount(of key: SessionKey, in db: Database) throws -> AccountKey? {
        try AccountKey.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM setting WHERE name = ? AND value <> 0"), arguments: [Mark.discard.name(of: key)])
    }

    /// Deletes checkpoints of a session that the transaction also removes, as many as the transaction may still delete. The removal of the
    /// session deletes the remaining checkpoints. The uploads and part files of all these checkpoints stay.
    static func dropCheckpoints(of key: SessionKey, _ transaction: inout StoreTransaction, in db: Database) throws {
        transaction.sessionsKeepingContent.insert(key)
        try execute(
            db,
            """
            DELETE FROM checkpoint WHERE session = ?1 AND (position, endpoint) IN (
                SELECT position, endpoint FROM checkpoint WHERE session = ?1 ORDER BY position, endpoint LIMIT ?2)
            """, [key, max(0, transaction.rowsToSweep)])
        transaction.rowsToSweep -= db.changesCount
    }

    static func discardCheckpoints(of key: SessionKey, in positions: ClosedRange<Int64>, at now: Date, in db: Database) throws {
        let range: StatementArguments = [key, positions.lowerBound, positions.upperBound]
        let rows = try StoredRow.fetchAll(
            db.cachedStatement(
                sql: "SELECT endpoint, data, confirmed, position FROM checkpoint WHERE session = ? AND position BETWEEN ? AND ?"),
            arguments: range)
        guard !rows.isEmpty else { return }
        try discard(rows, of: key, at: now, in: db)
        try execute(db, "DELETE FROM checkpoint WHERE session = ? AND position BETWEEN ? AND ?", range)
    }

    /// Moves the checkpoints of one file into the outbox, but deletes the checkpoint at the endpoint `address`, where the file is complete. If
    /// `address` is nil, the file is complete at no endpoint.
    static func discardCheckpoints(of key: SessionKey, position: Int64, completedAt address: String?, at now: Date, in db: Database) throws
    {
        let rows = try StoredRow.fetchAll(
            db.cachedStatement(sql: "SELECT endpoint, data, confirmed, position FROM checkpoint WHERE session = ? AND position = ?"),
            arguments: [key, position])
        guard !rows.isEmpty else { return }
        try discard(rows.filter { (try? $0.decode(String.self, atIndex: 0)) != address }, of: key, at: now, in: db)
        try execute(db, "DELETE FROM checkpoint WHERE session = ? AND position = ?", [key, position])
    }

    static func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, position: Int64, _ now: Date, in db: Database) throws {
        try discard(checkpoint, at: try StoreCoding.encode(endpoint), heldBy: nil, position: position, now, in: db)
    }

    private static func discard(_ rows: [StoredRow], of key: SessionKey, at now: Date, in db: Database) throws {
        guard !rows.isEmpty else { return }
        try discard(rows, of: key, at: try accountDefinition(of: key, in: db), isHeld: false, now, in: db)
    }

    /// The definition of a session's account, or of another account, as JSON. Nil if the account was deleted, or if the session downloads,
    /// because downloads leave nothing on a server.
    static func accountDefinition(of key: SessionKey, at account: AccountKey? = nil, in db: Database) throws -> String? {
        try String.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT definition FROM account JOIN session ON ifnull(?2, session.account) = account.key
                    WHERE session.key = ?1 AND direction <> 'download'
                    """), arguments: [key, account])
    }

    private static func discard(
        _ rows: [StoredRow], of key: SessionKey, at definition: String?, isHeld: Bool, _ now: Date, in db: Database
    ) throws {
        // A download can leave a part file on this machine, but nothing on a server.
        for row in rows {
            guard let partFileEndpoint = (try? row.decode(String.self, atIndex: 0)).flatMap(Endpoint.localPartFile(at:)),
                let data = try? row.decode(Data.self, atIndex: 1)
            else { continue }
            try discard(
                Checkpoint(data: data, confirmed: 0), at: try StoreCoding.encode(partFileEndpoint), heldBy: isHeld ? key : nil,
                position: try row.decode(atIndex: 3), now, in: db)
        }
        // An unreadable account must not prevent the removal of its sessions.
        let account: Account? = try? StoreCoding.decodeIfPresent(from: definition)
        for row in rows {
            // The queue can't reach an endpoint that the account no longer has, so the content there is not removed.
            guard let address = try? row.decode(String.self, atIndex: 0),
                let endpoint = account?.endpoints.first(where: { $0.address == address }), let data = try? row.decode(Data.self, atIndex: 1)
            else { continue }
            try discard(
                Checkpoint(data: data, confirmed: (try? bytes(row, atIndex: 2)) ?? 0), at: try StoreCoding.encode(endpoint),
                heldBy: isHeld ? key : nil, position: try row.decode(atIndex: 3), now, in: db)
        }
    }

    private static func discard(
        _ checkpoint: Checkpoint, at endpoint: String, heldBy key: SessionKey?, position: Int64, _ now: Date, in db: Database
    ) throws {
        let giveUpAt = now.addingTimeInterval(Self.discardLifetime)
        try execute(
            db,
            "INSERT INTO discard(endpoint, data, confirmed, next_attempt_at, give_up_at, held_by, position) VALUES (?, ?, ?, 0, ?, ?, ?)",
            [endpoint, checkpoint.data, checkpoint.confirmed, StoreCoding.encode(giveUpAt), key, position])
    }

    /// Adds a held removal for a checkpoint that the unfinished run of a removed session saved. If the session is in quarantine, instead
    /// stores the checkpoint with the session's other rows.
    static func holdDiscard(
        _ checkpoint: Checkpoint, at endpoint: Endpoint, of key: SessionKey, position: Int64, _ now: Date, in db: Database
    ) throws {
        if let quarantine = try quarantine(of: key, in: db) {
            return try quarantineRow(
                [
                    ("session", key.databaseValue), ("position", position.databaseValue), ("endpoint", endpoint.address.databaseValue),
                    ("data", checkpoint.data.databaseValue), ("confirmed", checkpoint.confirmed.databaseValue),
                ], of: "checkpoint", in: quarantine, db)
        }
        try dropDiscard(of: key, position: position, endpoint, in: db)
        try discard(checkpoint, at: try StoreCoding.encode(endpoint), heldBy: key, position: position, now, in: db)
    }

    /// Deletes the held removal of a file that the run of a removed session has completed, because a completed file must not be removed.
    /// Also deletes the file's checkpoint, if it has not been moved into the outbox yet.
    static func dropDiscard(of key: SessionKey, position: Int64, _ endpoint: Endpoint, in db: Database) throws {
        try execute(
            db, "DELETE FROM discard WHERE held_by = ? AND position = ? AND json_extract(endpoint, '$.address') = ?",
            [key, position, endpoint.address])
        try execute(
            db,
            """
            DELETE FROM checkpoint WHERE session = ?1 AND position = ?2 AND endpoint = ?3
                AND EXISTS (SELECT 1 FROM removal WHERE session = ?1 AND is_held <> 0)
            """, [key, position, endpoint.address])
    }

    static func hasDueDiscards(at date: Date, in db: Database) throws -> Bool {
        try Bool.fetchOne(db.cachedStatement(sql: DiscardQuery.hasDue), arguments: [StoreCoding.encode(date)]) ?? false
    }

    /// Returns the first due removals, the keys of unreadable due removals, and the time at which the next removal is due.
    ///
    /// - Parameters:
    ///   - isLocalOnly: Whether to return only removals of part files on this machine.
    ///   - endpoints: The endpoints whose removals to return, in their stored form; nil for all endpoints.
    package func dueDiscards(at date: Date, limit: Int, isLocalOnly: Bool = false, among endpoints: [String]? = nil) async throws -> (
        due: [PendingDiscard], unreadable: [Int64], next: Date?
    ) {
        let endpoints = try endpoints.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
        return try await read { db in
            let now = StoreCoding.encode(date)
            var due: [PendingDiscard] = []
            var unreadable: [Int64] = []
            for row in try StoredRow.fetchAll(
                db, sql: DiscardQuery.due(isLocalOnly: isLocalOnly), arguments: [now, limit, endpoints])
            {
                if let removal = try? PendingDiscard(row) { due.append(removal) } else { unreadable.append(try row.decode(atIndex: 0)) }
            }
            let next = try Int64.fetchOne(db, sql: DiscardQuery.next(isLocalOnly: isLocalOnly), arguments: [now])
            return (due, unreadable, next.map(StoreCoding.date))
        }
    }

    /// Returns the removals that are due after a date, in the order of their keys. Omits removals whose server asked the queue to back off
    /// beyond the date.
    package func laterDiscards(at date: Date, after key: Int64?, limit: Int) async throws -> [PendingDiscard] {
        try await read { db in
            try StoredRow.fetchAll(db, sql: DiscardQuery.later, arguments: [key ?? .min, StoreCoding.encode(date), limit])
                .compactMap { try? PendingDiscard($0) }
        }
    }

    /// Returns the endpoints that asked the queue to back off until a time after a date, and the end of each requested delay.
    func backOffEndpoints(at date: Date) async throws -> [(endpoint: Endpoint, until: Date)] {
        try await read { db in
            try StoredRow.fetchAll(db, sql: DiscardQuery.backOffEndpoints, arguments: [StoreCoding.encode(date)]).compactMap { row in
                guard let endpoint: Endpoint = try? StoreCoding.decode(from: row.decode(atIndex: 0)) else { return nil }
                return (endpoint, StoreCoding.date(try row.decode(atIndex: 1)))
            }
        }
    }

    /// Returns the number of removals of content on servers, including removals that are not due yet.
    func discardsAtServers() async throws -> Int {
        try await read { db in
            let sql = "SELECT count(*) FROM discard WHERE \(DiscardQuery.transport) <> '\(TransportID.localPartFiles)'"
            return try Int.fetchOne(db, sql: sql) ?? 0
        }
    }
}

extension PendingDiscard {
    fileprivate init(_ row: StoredRow) throws {
        self.init(
            key: try row.decode(atIndex: 0), endpoint: try StoreCoding.decode(from: row.decode(atIndex: 1)),
            checkpoint: Checkpoint(data: try row.decode(atIndex: 2), confirmed: try QueueStore.bytes(row, atIndex: 3)),
            attempts: Int(min(max(0, try row.decode(Int64.self, atIndex: 4)), QueueStore.maximumStoredAttempts)),
            giveUpAt: StoreCoding.date(try row.decode(atIndex: 5)))
    }
}
