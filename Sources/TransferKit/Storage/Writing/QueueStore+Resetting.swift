import Foundation
import GRDB
import TransferCore

/// Resets all files or only the failed files of a session that will run again. A session can have a million files, so each transaction
/// resets at most ``maximumRowsPerSweep`` files. A stored mark records the progress. A run completes the reset of its session before it
/// reads the session's files.
extension QueueStore {
    /// The value of the mark while only the failed files of a session are reset.
    private static let failedOnly: Int64 = -1

    /// Begins the reset of a session: resets the first files, and stores a mark if files remain.
    ///
    /// - Parameter isWhole: Whether to reset all files, and not only the failed files.
    static func reset(_ key: SessionKey, isWhole: Bool, _ transaction: inout StoreTransaction, in db: Database) throws {
        try remove([.discard], of: key, in: db)
        try execute(db, "UPDATE session SET error = NULL, ended_at = NULL, attempts = 0 WHERE key = ?", [key])
        if isWhole {
            try execute(
                db, "UPDATE session SET files_done = 0, bytes_done = 0, started_at = NULL, milliseconds = 0, times = NULL WHERE key = ?",
                [key])
        }
        // A reset of all files includes the failed files, so it replaces a reset of the failed files that is in progress.
        try execute(
            db,
            """
            INSERT INTO setting(name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE
                SET value = CASE WHEN ?2 = 0 OR value IS NULL THEN ?2 ELSE value END
            """, [Mark.reset.name(of: key), isWhole ? 0 : failedOnly])
        try continueReset(key, at: transaction.now, in: db)
        if try has(.reset, of: key, in: db) { transaction.leavesDeferredWork = true }
    }

    /// Resets the next files of a session, if a reset is in progress.
    static func continueReset(_ key: SessionKey, at now: Date, in db: Database) throws {
        let name = Mark.reset.name(of: key)
        guard let mark = try Int64.fetchOne(db, sql: "SELECT value FROM setting WHERE name = ?", arguments: [name]) else { return }
        let positions: [Int64]
        if mark >= 0 {
            positions = try Int64.fetchAll(
                db, sql: "SELECT position FROM file WHERE session = ? AND position >= ? ORDER BY position LIMIT ?",
                arguments: [key, mark, maximumRowsPerSweep])
        } else {
            positions = try Int64.fetchAll(
                db,
                sql: """
                    SELECT position FROM file INDEXED BY file_failed WHERE session = ? AND state = 'failed'
                        AND (generation <> ? OR kind IN ('folder', 'remoteFolder')) ORDER BY position LIMIT ?
                    """, arguments: [key, standInGeneration, maximumRowsPerSweep])
        }
        if let first = positions.first, let last = positions.last {
            if mark >= 0 { try discardCheckpoints(of: key, in: first...last, at: now, in: db) }
            try retryFailedItems(of: key, in: first...last, at: now, in: db)
            if mark >= 0 {
                try execute(
                    db,
                    """
                    UPDATE file SET state = 'pending', error = NULL, receipt = NULL, generation = generation + 1
                    WHERE session = ? AND position BETWEEN ? AND ? AND state <> 'skipped' AND generation <> \(standInGeneration)
                    """, [key, first, last])
            }
            if positions.count == maximumRowsPerSweep, last < greatestPosition {
                return try execute(db, "UPDATE setting SET value = ? WHERE name = ?", [mark >= 0 ? last + 1 : failedOnly, name])
            }
        }
        try remove([.reset], of: key, in: db)
        try execute(
            db,
            """
            UPDATE session SET files_failed =
                (SELECT count(*) FROM file INDEXED BY file_failed WHERE session = ?1 AND state = 'failed' AND \(isCounted("?1")))
                WHERE key = ?1
            """, [key])
    }

    /// Makes failed files pending again, and moves unreadable folders back to the pending items. Files whose source changed restart with their
    /// current content. Stand-ins for files stay failed.
    private static func retryFailedItems(of key: SessionKey, in positions: ClosedRange<Int64>, at now: Date, in db: Database) throws {
        let range: StatementArguments = [key, positions.lowerBound, positions.upperBound]
        try restartChangedFiles(range, of: key, at: now, in: db)
        try execute(
            db,
            """
            INSERT INTO item(session, sequence, kind, directory, source, destination, size, symbolic_links)
            SELECT session, position - ?2 + (SELECT ifnull(max(sequence), -1) + 1 FROM item WHERE session = ?1),
                kind, directory, source, destination, 0, symbolic_links
            FROM file WHERE session = ?1 AND position BETWEEN ?2 AND ?3 AND state = 'failed' AND kind IN ('folder', 'remoteFolder')
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

    /// Restarts files that changed after a part of them was sent, because a user who retries such a file wants its current content.
    private static func restartChangedFiles(_ range: StatementArguments, of key: SessionKey, at now: Date, in db: Database) throws {
        let positions = try Int64.fetchAll(
            db,
            sql: """
                SELECT position FROM file WHERE session = ? AND position BETWEEN ? AND ? AND state = 'failed'
                    AND CASE WHEN json_valid(error) THEN json_extract(error, '$.failureClass') END = ?
                """, arguments: range + [FailureClass.sourceChanged.rawValue])
        for position in positions {
            try discardCheckpoints(of: key, position: position, completedAt: nil, at: now, in: db)
            try execute(db, "UPDATE file SET generation = generation + 1 WHERE session = ? AND position = ?", [key, position])
        }
    }
}
