import Foundation
import GRDB
import TransferCore

/// Restores and deletes sessions in quarantine, at the user's request. Each operation takes several transactions if there are many rows.
extension QueueStore {
    /// The tables with a session's rows. Each table comes after the tables that it refers to.
    private static let restoredTables = ["file", "directory", "item", "checkpoint", "session_tag"]

    package func quarantinedCount() async throws -> Int {
        try await read { try Int.fetchOne($0, sql: "SELECT count(*) FROM quarantine") ?? 0 }
    }

    /// Deletes a session in quarantine. The next opening of the queue deletes the session's spool files, because no row refers to them any
    /// longer.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession` if no session in quarantine has this number; `storageUnavailable` or
    ///   `storageDamaged`.
    package func dropQuarantined(_ number: Int64) async throws(QueueError) {
        try await change { db in
            _ = try Self.quarantinedContent(number, in: db)
            try Self.beginDropping(number, in: db)
        }
        var isDone = false
        while !isDone {
            isDone = try await change { db in
                try Self.execute(
                    db,
                    """
                    DELETE FROM quarantined_row WHERE number IN (
                        SELECT number FROM quarantined_row WHERE quarantine = ? ORDER BY number LIMIT \(Self.maximumRowsPerSweep))
                    """, [number])
                guard db.changesCount == 0 else { return false }
                try Self.execute(db, "DELETE FROM quarantine WHERE key = ?", [number])
                return true
            }
        }
    }

    /// Begins to delete a session in quarantine. The session can no longer be restored, because it will soon lack rows.
    ///
    /// The session may have rows in their original tables: rows that have not been moved into quarantine yet, or that an interrupted restoration
    /// moved back. Marks these rows for deletion.
    static func beginDropping(_ number: Int64, in db: Database) throws {
        try execute(db, "UPDATE quarantine SET content = '{}' WHERE key = ?", [number])
        try execute(db, "UPDATE removal SET quarantine = NULL WHERE quarantine = ?", [number])
        try execute(
            db,
            """
            INSERT OR IGNORE INTO removal(session)
            SELECT session.key FROM quarantine JOIN session ON session.key = quarantine.session
            WHERE quarantine.key = ? AND session.account = ?
                AND NOT EXISTS (SELECT 1 FROM schedule WHERE schedule.session = session.key)
            """, [number, removedAccount])
    }

    /// Moves a session from quarantine back to its original tables, where the next opening of the queue finds it. An unreadable session
    /// goes into quarantine again. Upload URLs of items are restored, too.
    ///
    /// If the process ends before the call returns, the session stays in quarantine. Another call completes the work.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession` if no session in quarantine has this number, or if the session is incomplete;
    ///   `noSuchAccount` if its account was deleted; `invalidTransition` while rows of the session are still being moved into quarantine;
    ///   `storageUnavailable` or `storageDamaged`.
    package func restoreQuarantined(_ number: Int64) async throws(QueueError) {
        let key = try await change { try Self.beginRestoring(number, in: $0) }
        for table in Self.restoredTables {
            while try await change({ try Self.restoreRows(of: table, number, in: $0) }) {}
        }
        try await commit([.restoreSession(key, quarantine: number)])
    }

    /// Restores the session's row in the table `session`, so that the session's other rows can refer to it. If the queue is opened at
    /// this point, it does not find the session yet, because the session has no row in the table `schedule`.
    private static func beginRestoring(_ number: Int64, in db: Database) throws -> SessionKey {
        let (key, content) = try restorableContent(number, in: db)
        guard
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM removal WHERE quarantine = ? OR session = ?)", arguments: [number, key]) != true
        else {
            throw QueueError(.invalidTransition, "Rows of session \(number) are still being moved into quarantine. Retry in a few seconds.")
        }
        try requireAccount(content, number, in: db)
        try execute(db, "INSERT INTO account(key, name, definition) VALUES (?, '', '{}') ON CONFLICT DO NOTHING", [removedAccount])
        var values = content
        values["session.account"] = String(removedAccount)
        try restore(values, into: "session", prefix: "session.", in: db)
        return key
    }

    private static func requireAccount(_ content: [String: String], _ number: Int64, in db: Database) throws {
        let account = content["session.account"].flatMap { AccountKey($0) } ?? removedAccount
        guard account != removedAccount,
            try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM account WHERE key = ?)", arguments: [account]) == true
        else {
            throw QueueError(
                .noSuchAccount, "The account of session \(number) was deleted, so the session can't be restored. Drop the session.")
        }
    }

    private static func restoreRows(of table: String, _ number: Int64, in db: Database) throws -> Bool {
        let rows = try StoredRow.fetchAll(
            db,
            sql: """
                SELECT number, content FROM quarantined_row WHERE quarantine = ? AND origin = ? ORDER BY number LIMIT \(maximumRowsPerSweep)
                """, arguments: [number, table])
        for row in rows {
            try restore(try StoreCoding.decode(from: row.decode(atIndex: 1)), into: table, in: db)
            try execute(db, "DELETE FROM quarantined_row WHERE number = ?", [try row.decode(Int64.self, atIndex: 0)])
        }
        return !rows.isEmpty
    }

    static func restoreSession(_ number: Int64, in db: Database) throws {
        // Another call may have begun to delete the session while its rows were being restored.
        var (key, content) = try restorableContent(number, in: db)
        try requireAccount(content, number, in: db)
        // A session that an older version quarantined has its deadline only in its options.
        if content["schedule.deadline"] == nil, let options = content["session.options"],
            let deadline = (try? StoreCoding.decode(SessionOptions.self, from: options))?.deadline
        {
            content["schedule.deadline"] = String(StoreCoding.encode(deadline))
            content["schedule.deadline_from"] = content["session.deadline_from"]
        }
        try restore(content, into: "schedule", prefix: "schedule.", in: db)
        try execute(db, "UPDATE session SET account = ? WHERE key = ?", [content["session.account"].flatMap { Int64($0) }, key])
        try restoreMarks(content, of: key, in: db)
        try execute(db, "DELETE FROM quarantine WHERE key = ?", [number])
    }

    private static func restorableContent(_ number: Int64, in db: Database) throws -> (key: SessionKey, content: [String: String]) {
        let content = try quarantinedContent(number, in: db)
        guard let key = content["session.key"].flatMap({ SessionKey($0) }), content["schedule.session"] == content["session.key"] else {
            throw QueueError(
                .noSuchSession, "The session with the number \(number) is incomplete, so it can't be restored. Drop the session.")
        }
        return (key, content)
    }

    private static func quarantinedContent(_ number: Int64, in db: Database) throws -> [String: String] {
        guard let text = try String.fetchOne(db, sql: "SELECT content FROM quarantine WHERE key = ?", arguments: [number]) else {
            throw QueueError(.noSuchSession, "The quarantine has no session with the number \(number).")
        }
        return try StoreCoding.decode(from: text)
    }

    /// Inserts a row whose values are stored as text in quarantine. An existing row stays unchanged.
    private static func restore(_ content: [String: String], into table: String, prefix: String = "", in db: Database) throws {
        var (names, values): ([String], [DatabaseValue]) = ([], [])
        for column in try StoredRow.fetchAll(db, sql: "SELECT name, type FROM pragma_table_info(?)", arguments: [table]) {
            let name: String = try column.decode(atIndex: 0)
            guard let text = content[prefix + name] else { continue }
            names.append(name)
            values.append(try value(of: text, type: try column.decode(atIndex: 1)))
        }
        let placeholders = names.map { _ in "?" }.joined(separator: ", ")
        try execute(
            db, "INSERT OR IGNORE INTO \(table)(\(names.joined(separator: ", "))) VALUES (\(placeholders))",
            StatementArguments(values))
    }

    private static func value(of text: String, type: String) throws -> DatabaseValue {
        switch type {
        case "INTEGER": return Int64(text)?.databaseValue ?? text.databaseValue
        case "BLOB":
            let digits = Array(text.utf8)
            guard digits.count.isMultiple(of: 2) else { return text.databaseValue }
            var data = Data(capacity: digits.count / 2)
            for index in stride(from: 0, to: digits.count, by: 2) {
                guard let byte = UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16) else {
                    return text.databaseValue
                }
                data.append(byte)
            }
            return data.databaseValue
        default: return text.databaseValue
        }
    }

    private func change<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws(QueueError) -> Value {
        do {
            return try await writeInPlace(body)
        } catch {
            throw Self.storageError(error, folder: folder)
        }
    }
}
