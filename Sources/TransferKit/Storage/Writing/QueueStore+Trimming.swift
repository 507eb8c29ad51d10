import GRDB
import TransferCore

/// Limits for the stored rows that wait for an action by the user or for a server. The oldest rows are deleted first.
package struct StoreLimits: Sendable {
    /// The maximum number of sessions in quarantine.
    package var quarantined = 1_000
    /// The maximum number of quarantined rows of all sessions, unless the newest session alone has more.
    package var quarantinedSessions: Int64 = 2_000_000
    /// The approximate maximum number of removals that wait for servers: the maximum distance of a removal's key from the newest key. If a
    /// removal is deleted, the content stays, unless the server removes it automatically.
    package var discards: Int64 = 1_000_000

    package init() {}
}

/// The rows that were deleted because they exceeded a limit.
package struct TrimmedRows: Sendable, Equatable {
    /// The reason for the quarantine of each deleted session.
    package var sessions: [String] = []
    /// The number of deleted removals.
    package var removals = 0
}

extension QueueStore {
    /// Returns whether the stored rows exceed the limits. Counts the quarantined rows only if there may be too many.
    static func exceeds(_ limits: StoreLimits, in db: Database) throws -> Bool {
        if try oldestToDrop(limits, in: db) != nil { return true }
        return try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM discard WHERE \(isOldDiscard))", arguments: [limits.discards])
            == true
    }

    /// Deletes at most ``maximumRowsPerSweep`` rows beyond the limits.
    ///
    /// - Parameter report: Receives the deleted rows.
    /// - Returns: Whether there may be more rows beyond the limits.
    package func trim(_ limits: StoreLimits = StoreLimits(), _ report: @Sendable (TrimmedRows) -> Void = { _ in }) async throws(QueueError)
        -> Bool
    {
        do {
            let (hasMore, trimmed) = try await writeInPlace { db in
                var trimmed = TrimmedRows()
                if let number = try Self.oldestToDrop(limits, in: db) {
                    try Self.beginDropping(number, in: db)
                    try Self.execute(
                        db,
                        """
                        DELETE FROM quarantined_row WHERE number IN (
                            SELECT number FROM quarantined_row WHERE quarantine = ? ORDER BY number LIMIT \(Self.maximumRowsPerSweep))
                        """, [number])
                    if db.changesCount < Self.maximumRowsPerSweep {
                        trimmed.sessions = try String.fetchAll(db, sql: "SELECT reason FROM quarantine WHERE key = ?", arguments: [number])
                        try Self.execute(db, "DELETE FROM quarantine WHERE key = ?", [number])
                    }
                    return (true, trimmed)
                }
                try Self.execute(
                    db,
                    """
                    DELETE FROM discard WHERE key IN (
                        SELECT key FROM discard WHERE \(Self.isOldDiscard) ORDER BY key LIMIT \(Self.maximumRowsPerSweep))
                    """, [limits.discards])
                trimmed.removals = db.changesCount
                return (trimmed.removals > 0, trimmed)
            }
            report(trimmed)
            return hasMore
        } catch {
            throw Self.storageError(error, folder: folder)
        }
    }

    /// An SQL condition for removals in the outbox (``DiscardQuery``) whose keys are at least ? below the newest key. Excludes removals of part
    /// files on this machine, and held removals.
    private static let isOldDiscard = """
        key <= (SELECT max(key) FROM discard) - ? AND held_by IS NULL AND \(DiscardQuery.transport) IS NOT '\(TransportID.localPartFiles)'
        """

    /// Returns the number of the next session in quarantine to delete; nil if the quarantine is within the limits. The newest session always stays.
    private static func oldestToDrop(_ limits: StoreLimits, in db: Database) throws -> Int64? {
        guard let oldest = try Int64.fetchOne(db, sql: "SELECT min(key) FROM quarantine"),
            let newest = try Int64.fetchOne(db, sql: "SELECT max(key) FROM quarantine"), oldest < newest
        else { return nil }
        let isBeyond = try Bool.fetchOne(
            db, sql: "SELECT EXISTS (SELECT 1 FROM quarantine ORDER BY key LIMIT 1 OFFSET ?)", arguments: [max(1, limits.quarantined)])
        if isBeyond == true { return oldest }
        // The row numbers can have gaps, so a large difference only shows that there may be too many rows. In that case, count the rows.
        let span = try Int64.fetchOne(db, sql: "SELECT max(number) - min(number) FROM quarantined_row") ?? 0
        guard span >= limits.quarantinedSessions else { return nil }
        let count = try Int64.fetchOne(db, sql: "SELECT count(*) FROM quarantined_row") ?? 0
        return count > limits.quarantinedSessions ? oldest : nil
    }
}
