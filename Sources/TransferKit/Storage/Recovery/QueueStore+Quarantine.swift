public import Foundation
import GRDB

/// A session in quarantine. The queue could not read or store the session, so the queue set the session aside, and continued with its
/// other sessions.
public struct QuarantinedSession: Codable, Hashable, Sendable {
    /// The number of the session in the quarantine of its storage folder.
    public var number: Int64
    /// The time at which the session went into quarantine.
    public var foundAt: Date
    /// The reason for the quarantine, as text for the user.
    public var reason: String
    /// The stored session as JSON. Omits the creation URL and the settings from the session's options.
    /// ``TransferQueue/quarantinedRows(of:after:limit:)`` returns the session's other rows, such as files and checkpoints.
    public var content: String

    /// The ID of the session, if it can be read.
    public var session: SessionID? {
        guard let digits = values["schedule.id"]?.utf8, digits.count == 32 else { return nil }
        let pairs = stride(from: 0, to: 32, by: 2).map { String(decoding: Array(digits.dropFirst($0).prefix(2)), as: UTF8.self) }
        return SessionID(data: Data(pairs.compactMap { UInt8($0, radix: 16) }))
    }

    /// The name of the session, if it can be read.
    public var name: String? { values["session.name"] }

    private var values: [String: String] { (try? StoreCoding.decode(from: content)) ?? [:] }
}

/// A row of a session in quarantine, for example a file or a checkpoint.
public struct QuarantinedRow: Hashable, Sendable {
    /// The number of the row. Later rows have greater numbers.
    public var number: Int64
    /// The original table of the row.
    public var origin: String
    /// The row as JSON, with bytes as hexadecimal digits. Omits upload URLs and creation URLs.
    public var content: String
}

extension QueueStore {
    /// Moves a session into quarantine. Keeps all rows of the session, regardless of their number, and the spool files that the rows refer to.
    static func quarantine(_ key: SessionKey, _ reason: String, _ transaction: inout StoreTransaction, in db: Database) throws {
        var content: [String: String] = [:]
        for table in ["schedule", "session"] {
            let column = table == "schedule" ? "session" : "key"
            guard let row = try StoredRow.fetchOne(db, sql: "SELECT * FROM \(table) WHERE \(column) = ?", arguments: [key]) else {
                continue
            }
            for (name, value) in row.columns { content["\(table).\(name)"] = text(of: value) }
        }
        try execute(
            db, "INSERT INTO quarantine(found_at, reason, content, session) VALUES (?, ?, ?, ?)",
            [StoreCoding.encode(transaction.now), reason, try StoreCoding.encode(content), key])
        let number = db.lastInsertedRowID
        try remove(of: key, in: db)
        try removeFromQueue(key, quarantine: number, in: db)
        try sweep(key, quarantine: number, &transaction.rowsToSweep, in: db)
        // Requests a deferred deletion even if no rows are left, because that deletion also checks the size of the quarantine.
        transaction.leavesDeferredWork = true
    }

    /// Stores a row of a session that is in quarantine.
    static func quarantineRow(
        _ columns: [(name: String, value: DatabaseValue)], of table: String, in quarantine: Int64, _ db: Database
    ) throws {
        var content: [String: String] = [:]
        for (name, value) in columns { content[name] = text(of: value) }
        try execute(
            db, "INSERT INTO quarantined_row(quarantine, origin, content) VALUES (?, ?, ?)",
            [quarantine, table, try StoreCoding.encode(content)])
    }

    /// Returns the quarantine number of a session; nil if the session is not in quarantine.
    static func quarantine(of key: SessionKey, in db: Database) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(key) FROM quarantine WHERE session = ?"), arguments: [key])
    }

    private static func text(of value: DatabaseValue) -> String? {
        switch value.storage {
        case .null: nil
        case .int64(let number): String(number)
        case .double(let number): String(number)
        case .string(let text): text
        case .blob(let data): data.map { String(format: "%02x", $0) }.joined()
        }
    }

    /// Returns all sessions in quarantine, the oldest first. Omits the creation URL and the settings from each session's options, because
    /// they must not be shown.
    package func quarantined() async throws -> [QuarantinedSession] {
        try await read { db in
            try StoredRow.fetchAll(db, sql: "SELECT key, found_at, reason, \(Self.shownContent) FROM quarantine ORDER BY key").map {
                QuarantinedSession(
                    number: try $0.decode(atIndex: 0), foundAt: StoreCoding.date(try $0.decode(atIndex: 1)),
                    reason: try $0.decode(atIndex: 2), content: try $0.decode(atIndex: 3))
            }
        }
    }

    /// An SQL expression for the content of a session without secrets. Omits options that are not valid JSON. The options are text within the JSON
    /// of the content, and the operator `||` keeps them text.
    private static let shownContent = """
        CASE WHEN NOT json_valid(content) THEN '{}'
            WHEN json_valid(json_extract(content, '$."session.options"')) THEN json_replace(content, '$."session.options"',
                json_remove(json_extract(content, '$."session.options"'), '$.creationURL', '$.settings') || '')
            ELSE json_remove(content, '$."session.options"') END
        """

    /// Returns the rows of a session in quarantine whose numbers are greater than `last`, in order. Omits upload URLs, which must not be shown.
    package func quarantinedRows(of number: Int64, after last: Int64, limit: Int) async throws -> [QuarantinedRow] {
        try await read { db in
            try StoredRow.fetchAll(
                db,
                sql: """
                    SELECT number, origin, CASE WHEN json_valid(content) THEN json_remove(content, '$.upload_url', '$.creation_url') ELSE '{}' END
                    FROM quarantined_row WHERE quarantine = ? AND number > ? ORDER BY number LIMIT ?
                    """,
                arguments: [number, last, limit]
            ).map {
                QuarantinedRow(number: try $0.decode(atIndex: 0), origin: try $0.decode(atIndex: 1), content: try $0.decode(atIndex: 2))
            }
        }
    }
}
