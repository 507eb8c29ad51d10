import Foundation
import GRDB
import TransferCore

/// Resets all files or only the failed files of a session that will run again. Sessions can have millions of files, so a transaction resets at most
/// as many files as ``StoreTransaction/rowsToSweep`` permits, possibly none. A stored mark records the progress. A run completes the reset of its
/// session before it reads the session's files.
extension QueueStore {
    /// The value of the mark while only the failed files of a session are reset.
    private static let failedOnly: Int64 = -1

    /// Begins the reset of a session: resets the first files, and stores a mark if files remain.
    ///
    /// During the reset, the session's statistics include no failed files. After the reset, they include the stand-ins, which stay failed.
    /// A stand-in is a row for a file or folder whose name can't be stored.
    ///
    /// - Parameter isWhole: Whether to reset all files, and not only the failed files.
    static func reset(_ key: SessionKey, isWhole: Bool, _ transaction: inout StoreTransaction, in db: Database) throws {
        // A retry resumes the session's unfinished uploads. The uploads at an earlier account of the session must still be removed.
        try execute(db, "DELETE FROM setting WHERE name = ? AND ifnull(value, 0) = 0", [Mark.discard.name(of: key)])
        let resetColumns = isWhole ? ", files_done = 0, bytes_done = 0, started_at = NULL, milliseconds = 0, times = NULL" : ""
        try execute(
            db, "UPDATE session SET error = NULL, ended_at = NULL, attempts = 0, files_failed = 0\(resetColumns) WHERE key = ?", [key])
        // A reset of all files includes the failed files, so it replaces a reset of the failed files that is in progress.
        let mark = try isWhole ? 0 : value(of: .reset, key, in: db) ?? failedOnly
        try resetFiles(of: key, from: mark, &transaction, in: db)
    }

    static func continueReset(_ key: SessionKey, _ transaction: inout StoreTransaction, in db: Database) throws {
        guard let mark = try value(of: .reset, key, in: db) else { return }
        try resetFiles(of: key, from: mark, &transaction, in: db)
    }

    /// Resets files of a session, as many as the transaction may still change. Stores a mark if files remain; otherwise removes the mark.
    ///
    /// - Parameter mark: The position of the first file to reset, or ``failedOnly``.
    private static func resetFiles(
        of key: SessionKey, from mark: Int64, _ transaction: inout StoreTransaction, in db: Database
    ) throws {
        let limit = max(0, transaction.rowsToSweep)
        // One more position shows whether files remain.
        var positions = try positionsToReset(of: key, from: mark, limit: limit + 1, in: db)
        let hasMore = positions.count > limit
        if hasMore { positions.removeLast() }
        transaction.rowsToSweep -= positions.count
        // The positions of a damaged table may not be in order.
        let last = positions.max()
        if let first = positions.min(), let last {
            if mark >= 0 { try discardCheckpoints(of: key, in: first...last, at: transaction.now, in: db) }
            try retryFailedItems(of: key, in: first...last, at: transaction.now, in: db)
            if mark >= 0 {
                try execute(
                    db,
                    """
                    UPDATE file SET state = 'pending', error = NULL, receipt = NULL, generation = generation + 1
                    WHERE session = ? AND position BETWEEN ? AND ? AND state <> 'skipped' AND generation <> \(standInGeneration)
                    """, [key, first, last])
            }
        }
        if hasMore, max(last ?? 0, mark) < greatestPosition {
            let next = last.map { max($0, mark) + 1 } ?? mark
            try set(.reset, to: mark >= 0 ? next : failedOnly, of: key, in: db)
            transaction.leavesDeferredWork = true
            return
        }
        try remove([.reset], of: key, in: db)
        let failed = try Int64.fetchOne(
            db.cachedStatement(
                sql: "SELECT count(*) FROM file INDEXED BY file_failed WHERE session = ?1 AND state = 'failed' AND \(isInStatistics("?1"))"),
            arguments: [key])
        try execute(db, "UPDATE session SET files_failed = ?2 WHERE key = ?1 AND files_failed <> ?2", [key, failed ?? 0])
    }

    private static func positionsToReset(of key: SessionKey, from mark: Int64, limit: Int, in db: Database) throws -> [Int64] {
        guard mark < 0 else {
            return try Int64.fetchAll(
                db.cachedStatement(sql: "SELECT position FROM file WHERE session = ? AND position >= ? ORDER BY position LIMIT ?"),
                arguments: [key, mark, limit])
        }
        return try Int64.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT position FROM file INDEXED BY file_failed WHERE session = ? AND state = 'failed'
                        AND (generation <> ? OR kind IN ('folder', 'remoteFolder')) ORDER BY position LIMIT ?
                    """), arguments: [key, standInGeneration, limit])
    }

    /// Makes failed files pending again, and moves unreadable folders back to the pending items. Stand-ins stay failed.
    private static func retryFailedItems(of key: SessionKey, in positions: ClosedRange<Int64>, at now: Date, in db: Database) throws {
        let range: StatementArguments = [key, positions.lowerBound, positions.upperBound]
        try restartChangedFiles(range, of: key, at: now, in: db)
        try execute(
            db,
            """
            INSERT INTO item(session, sequence, kind, directory, source, destination, size, symbolic_links, place, unsized)
            SELECT session, position - ?2 + (SELECT ifnull(max(sequence), -1) + 1 FROM item WHERE session = ?1),
                kind, directory, source, destination, 0, symbolic_links, place, place IS NOT NULL
            FROM file WHERE session = ?1 AND position BETWEEN ?2 AND ?3 AND state = 'failed' AND kind IN ('folder', 'remoteFolder')
            """, range)
        // The statistics include the files of a partly read folder, so they must not include the folder itself as a file.
        try execute(
            db,
            """
            UPDATE session SET files = files - (SELECT count(*) FROM file WHERE session = ?1 AND position BETWEEN ?2 AND ?3
                AND state = 'failed' AND kind IN ('folder', 'remoteFolder') AND place IS NOT NULL) WHERE key = ?1
            """, range)
        try execute(
            db,
            """
            DELETE FROM file WHERE session = ? AND position BETWEEN ? AND ? AND state = 'failed' AND kind IN ('folder', 'remoteFolder')
            """, range)
        try execute(
            db,
            """
            UPDATE file SET state = 'pending', error = NULL
            WHERE session = ? AND position BETWEEN ? AND ? AND state = 'failed' AND generation <> \(standInGeneration)
            """, range)
    }

    /// Restarts files whose earlier progress is useless (``TransferError/makesCheckpointsUseless``). A user who retries a changed file
    /// wants its current content. The new generation gives the content another name, so the pending removal of the earlier content can't
    /// remove the new content.
    private static func restartChangedFiles(_ range: StatementArguments, of key: SessionKey, at now: Date, in db: Database) throws {
        let positions = try Int64.fetchAll(
            db,
            sql: """
                SELECT position FROM file WHERE session = ? AND position BETWEEN ? AND ? AND state = 'failed'
                    AND CASE WHEN json_valid(error) THEN json_extract(error, '$.failureClass') END IN (?, ?)
                """, arguments: range + [FailureClass.sourceChanged.rawValue, FailureClass.resumeLost.rawValue])
        for position in positions {
            try discardCheckpoints(of: key, position: position, completedAt: nil, at: now, in: db)
            try execute(db, "UPDATE file SET generation = generation + 1 WHERE session = ? AND position = ?", [key, position])
        }
    }
}
