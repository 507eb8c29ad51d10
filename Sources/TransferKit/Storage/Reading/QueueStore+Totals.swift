import GRDB

/// The totals of all sessions in the database.
package struct StoredTotals: Sendable {
    /// The totals of the sessions in each state.
    package var states: [SessionState: SessionFigures] = [:]
    /// The totals of the sessions that the caller excluded. ``states`` does not include them.
    package var leftOut = SessionFigures()
    /// The time during which at least one session ran, since the database was created.
    package var running = Duration.zero
    /// The number of bytes that were confirmed since the database was created.
    package var bytesConfirmed: Int64 = 0
}

extension QueueStore {
    /// Returns the totals of all sessions except the sessions with these keys. The duration of the call does not depend on the number of
    /// sessions in the database.
    package func totals(leavingOut keys: [SessionKey]) async throws -> StoredTotals {
        try await read { db in
            var totals = StoredTotals()
            for row in try StoredRow.fetchAll(db, sql: "SELECT state, files, files_done, files_failed, bytes_total, bytes_done FROM total")
            {
                guard let state = SessionState(rawValue: try row.decode(atIndex: 0)) else { continue }
                totals.states[state] = try SessionFigures(row)
            }
            let statement = try db.cachedStatement(sql: "\(SessionFigures.selection) WHERE session.key = ?")
            for key in keys {
                guard let row = try StoredRow.fetchOne(statement, arguments: [key]),
                    let state = SessionState(rawValue: try row.decode(atIndex: 0))
                else { continue }
                let figures = try SessionFigures(row)
                totals.states[state, default: SessionFigures()] -= figures
                totals.leftOut += figures
            }
            totals.running = .milliseconds(try Self.setting("milliseconds", in: db))
            totals.bytesConfirmed = try Self.setting("bytesConfirmed", in: db)
            return totals
        }
    }

    /// Returns a stored number, limited to 0 ... ``maximumBytes`` so that sums don't overflow.
    private static func setting(_ name: String, in db: Database) throws -> Int64 {
        let value = try Int64.fetchOne(db, sql: "SELECT value FROM setting WHERE name = ?", arguments: [name]) ?? 0
        return min(max(0, value), maximumBytes)
    }

    static func addToSetting(_ name: String, _ amount: Int64, in db: Database) throws {
        try execute(
            db,
            """
            INSERT INTO setting(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = min(max(ifnull(value, 0), 0), \(maximumBytes)) + excluded.value
            """, [name, min(amount, maximumBytes)])
    }

    /// Adds running times in milliseconds to a session and to the queue.
    static func addRunningTime(_ key: SessionKey?, _ session: Int64, queue: Int64, in db: Database) throws {
        if let key, session > 0 {
            try execute(
                db, "UPDATE session SET milliseconds = min(max(milliseconds, 0), \(maximumBytes)) + ? WHERE key = ?",
                [min(session, maximumBytes), key])
        }
        if queue > 0 { try addToSetting("milliseconds", queue, in: db) }
    }

    static func addTimes(_ times: TransferTimes, of key: SessionKey, in db: Database) throws {
        var sum = try storedTimes(of: key, in: db)
        sum += times
        try execute(db, "UPDATE session SET times = ? WHERE key = ?", [try StoreCoding.encode(sum), key])
    }

    /// The time that a session's attempts spent in each phase of the transfer. Excludes runs that have not ended. Zero if the stored value
    /// is damaged.
    func times(of key: SessionKey) async throws -> TransferTimes {
        try await read { db in try Self.storedTimes(of: key, in: db) }
    }

    private static func storedTimes(of key: SessionKey, in db: Database) throws -> TransferTimes {
        guard let row = try StoredRow.fetchOne(db, sql: "SELECT times FROM session WHERE key = ?", arguments: [key]),
            let text = try row.decode(String?.self, atIndex: 0)
        else { return TransferTimes() }
        return (try? StoreCoding.decode(TransferTimes.self, from: text)) ?? TransferTimes()
    }
}
