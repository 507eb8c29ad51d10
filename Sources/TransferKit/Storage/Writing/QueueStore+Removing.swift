import Foundation
import GRDB
import Locking
import TransferCore

/// Removes sessions. One transaction takes a session out of the queue. If the session has many rows, later transactions delete them, even if
/// the process exits in between.
extension QueueStore {
    /// The maximum number of rows that one transaction deletes, moves or resets.
    package static let maximumRowsPerSweep = 10_000

    /// The placeholder account of removed and quarantined sessions. It replaces their original account, so that the app can delete the original
    /// account.
    static let removedAccount: AccountKey = 0

    private struct SweptTable {
        var name: String
        /// The columns that identify a row of a session, in the order of the primary key.
        var key: [String]
        /// An SQL expression for the spool file of a row, or NULL.
        var spooled = "NULL"
    }

    private static let tables = [
        SweptTable(name: "checkpoint", key: ["position", "endpoint"]),
        SweptTable(name: "file", key: ["position"], spooled: "CASE WHEN kind IN ('blob', 'form') AND state <> 'completed' THEN source END"),
        SweptTable(name: "directory", key: ["number"]),
        SweptTable(name: "item", key: ["sequence"], spooled: "CASE WHEN kind IN ('blob', 'form') THEN source END"),
        SweptTable(name: "session_tag", key: ["tag"]),
    ]

    /// - Parameter isRunning: Whether the session has a run that has not ended, and could still complete a file.
    static func remove(_ key: SessionKey, isRunning: Bool, _ transaction: inout StoreTransaction, in db: Database) throws {
        // The checkpoints may belong to an earlier account of the session.
        let owner = try discardedAccount(of: key, in: db)
        try remove(of: key, in: db)
        let account = try accountDefinition(of: key, at: owner, in: db)
        let keepsContent = transaction.sessionsKeepingContent.contains(key)
        if !keepsContent {
            transaction.rowsToSweep -= try moveCheckpoints(
                of: key, at: account, isHeld: isRunning, limit: transaction.rowsToSweep, transaction.now, in: db)
        }
        let rows = try rowCount(of: key, atMost: transaction.rowsToSweep + 1, in: db)
        guard rows > transaction.rowsToSweep else {
            transaction.rowsToSweep -= rows
            transaction.freed += try blobs(of: key, in: db)
            return try execute(db, "DELETE FROM session WHERE key = ?", [key])
        }
        try removeFromQueue(key, quarantine: nil, in: db)
        let hasCheckpoints = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM checkpoint WHERE session = ?)", arguments: [key])
        if hasCheckpoints == true, !keepsContent {
            try execute(db, "UPDATE removal SET account = ?, is_held = ? WHERE session = ?", [account ?? "{}", isRunning, key])
        }
        transaction.leavesDeferredWork = true
    }

    /// Handles the end of a removed session's run. The session's unfinished uploads and part files can now be removed.
    static func release(_ key: SessionKey, _ transaction: inout StoreTransaction, in db: Database) throws {
        try execute(db, DiscardQuery.release, [key])
        try execute(db, "UPDATE removal SET is_held = 0 WHERE session = ? AND is_held <> 0", [key])
        if db.changesCount > 0 { transaction.leavesDeferredWork = true }
    }

    /// Takes a session out of the queue, so that readers no longer find it.
    ///
    /// - Parameter quarantine: The key of the quarantine that receives the session's rows; nil to delete the rows.
    static func removeFromQueue(_ key: SessionKey, quarantine: Int64?, in db: Database) throws {
        try execute(db, "INSERT INTO account(key, name, definition) VALUES (?, '', '{}') ON CONFLICT DO NOTHING", [removedAccount])
        try execute(db, "UPDATE session SET account = ? WHERE key = ?", [removedAccount, key])
        try execute(db, "DELETE FROM schedule WHERE session = ?", [key])
        try execute(db, "INSERT INTO removal(session, quarantine) VALUES (?, ?)", [key, quarantine])
    }

    static func rowCount(of key: SessionKey, atMost limit: Int, in db: Database) throws -> Int {
        var count = 0
        for table in tables where count < limit {
            count +=
                try Int.fetchOne(
                    db.cachedStatement(sql: "SELECT count(*) FROM (SELECT 1 FROM \(table.name) WHERE session = ? LIMIT ?)"),
                    arguments: [key, limit])
                ?? 0
        }
        return count
    }

    static func blobs(of key: SessionKey, in db: Database) throws -> [Data] {
        try Data.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT source FROM file WHERE session = ?1 AND kind IN ('blob', 'form') AND state <> 'completed'
                    UNION ALL SELECT source FROM item WHERE session = ?1 AND kind IN ('blob', 'form')
                    """), arguments: [key])
    }

    // MARK: Sweeping

    /// Returns whether there is work for ``DeferredDeletion``: a removed or quarantined session still has rows in their original tables,
    /// the stored rows exceed their limits (``StoreLimits``), or a reset of files or a move of checkpoints into the outbox
    /// (``DiscardQuery``) is incomplete.
    func hasDeferredWork() async throws -> Bool {
        try await read { db in
            try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM removal)") == true || Self.exceeds(StoreLimits(), in: db)
                || Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM setting WHERE name GLOB 'reset *' OR name GLOB 'discard *')")
                    == true
        }
    }

    /// Deletes at most `limit` rows of one removed session, or moves them into quarantine.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of rows; nil for ``rowsPerSweep``.
    ///   - skipped: Sessions to ignore.
    /// - Returns: Whether there may be more rows.
    package func sweep(_ limit: Int? = nil, leavingOut skipped: Set<SessionKey> = []) async throws(SweepFailure) -> Bool {
        let session = Locked<SessionKey?>(nil)
        let limit = limit ?? rowsPerSweep
        do {
            let now = clock.date()
            let freed = try await writeInPlace { db -> [Data]? in
                let rows = try StoredRow.fetchCursor(
                    db.makeStatement(sql: "SELECT session, quarantine, account FROM removal WHERE is_held = 0 ORDER BY session"))
                while let row = try rows.next() {
                    let key: SessionKey = try row.decode(atIndex: 0)
                    guard !skipped.contains(key) else { continue }
                    session.withLock { $0 = key }
                    var rest = limit
                    let (quarantine, account): (Int64?, String?) = (try row.decode(atIndex: 1), try row.decode(atIndex: 2))
                    if quarantine == nil, let account {
                        rest -= try Self.moveCheckpoints(of: key, at: account, isHeld: false, limit: rest, now, in: db)
                    }
                    return try Self.sweep(key, quarantine: quarantine, &rest, in: db)
                }
                return nil
            }
            guard let freed else { return false }
            await spool.remove(freed)
            return true
        } catch {
            // A `QueueError` means that the database was deleted or replaced, so the session's rows are not the cause.
            throw SweepFailure(
                session: session.withLock { $0 }, isPermanent: !(error is QueueError) && RefusedWrite(index: 0, reason: error).isPermanent,
                error: Self.storageError(error, folder: folder))
        }
    }

    /// Deletes rows of a removed session, or moves them into quarantine. After the last row, deletes the session's own row.
    ///
    /// - Parameter rest: The number of rows that the transaction may still delete or move. Reduced by the number of affected rows.
    /// - Returns: Spool files without remaining references.
    @discardableResult
    static func sweep(_ key: SessionKey, quarantine: Int64?, _ rest: inout Int, in db: Database) throws -> [Data] {
        guard rest > 0 else { return [] }
        var freed: [Data] = []
        for table in tables {
            let names = table.key.joined(separator: ", ")
            let rows = try StoredRow.fetchAll(
                db,
                sql: """
                    SELECT \(table.spooled), \(quarantine == nil ? names : "*") FROM \(table.name) WHERE session = ? ORDER BY \(names) LIMIT ?
                    """, arguments: [key, rest])
            guard let last = rows.last else { continue }
            rest -= rows.count
            for row in rows {
                if let quarantine {
                    try quarantineRow(Array(row.columns.dropFirst()), of: table.name, in: quarantine, db)
                } else if let name = Data.fromDatabaseValue(try row.value(atIndex: 0)) {
                    freed.append(name)
                }
            }
            let placeholders = table.key.map { _ in "?" }.joined(separator: ", ")
            let end = StatementArguments(try table.key.map { try last.value(forColumn: $0) })
            try execute(db, "DELETE FROM \(table.name) WHERE session = ? AND (\(names)) <= (\(placeholders))", [key] + end)
            guard rest > 0 else { return freed }
        }
        try execute(db, "DELETE FROM session WHERE key = ?", [key])
        try execute(db, "DELETE FROM removal WHERE session = ?", [key])
        return freed
    }
}

/// The reason why rows of a removed or quarantined session could not be deleted or moved.
package struct SweepFailure: Error {
    package var session: SessionKey?
    /// Whether a retry would fail in the same way.
    package var isPermanent: Bool
    package var error: QueueError
}
