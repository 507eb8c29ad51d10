public import Foundation
import GRDB

/// Something of the store that could not be read, and was set aside rather than stop everything else.
public struct QuarantinedRow: Codable, Hashable, Sendable {
    /// Names it, within one store.
    public var number: Int64
    /// When it was found.
    public var foundAt: Date
    /// What could not be read, and why.
    public var reason: String
    /// The session as it was, as JSON; its files and checkpoints are in ``TransferQueue/quarantinedParts(of:after:limit:)``.
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

/// A row that belonged to something that was set aside: a file of a session, or a checkpoint.
public struct QuarantinedPart: Hashable, Sendable {
    /// Grows from part to part.
    public var number: Int64
    /// The table of the store that it was in.
    public var origin: String
    /// The row as it was, as JSON, with bytes in hexadecimal digits.
    public var content: String
}

extension QueueStore {
    /// Takes a session out of the queue. All of its rows are kept, however many there are, and what they refer to in the spool.
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
        try endReset(of: key, in: db)
        try endDiscard(of: key, in: db)
        try takeOut(key, quarantine: number, in: db)
        try sweep(key, quarantine: number, &transaction.rowsToSweep, in: db)
        // The sweeper also looks whether there is too much in quarantine now.
        transaction.leavesRows = true
    }

    /// Keeps a row of something that was set aside.
    static func keep(_ columns: [(name: String, value: DatabaseValue)], of table: String, in quarantine: Int64, _ db: Database) throws {
        var content: [String: String] = [:]
        // What is kept here is shown; upload URLs never are.
        for (name, value) in columns where name != "upload_url" { content[name] = text(of: value) }
        try execute(
            db, "INSERT INTO quarantined_row(quarantine, origin, content) VALUES (?, ?, ?)",
            [quarantine, table, try StoreCoding.encode(content)])
    }

    /// Where a session was set aside to; nil if it was not.
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

    /// All that was set aside, the oldest first.
    package func quarantined() async throws -> [QuarantinedRow] {
        try await read { db in
            try StoredRow.fetchAll(db, sql: "SELECT key, found_at, reason, content FROM quarantine ORDER BY key").map {
                QuarantinedRow(
                    number: try $0.decode(atIndex: 0), foundAt: StoreCoding.date(try $0.decode(atIndex: 1)),
                    reason: try $0.decode(atIndex: 2), content: try $0.decode(atIndex: 3))
            }
        }
    }

    /// The rows that belonged to something that was set aside, in order.
    package func quarantinedParts(of number: Int64, after part: Int64, limit: Int) async throws -> [QuarantinedPart] {
        try await read { db in
            try StoredRow.fetchAll(
                db, sql: "SELECT number, origin, content FROM quarantined_row WHERE quarantine = ? AND number > ? ORDER BY number LIMIT ?",
                arguments: [number, part, limit]
            ).map {
                QuarantinedPart(number: try $0.decode(atIndex: 0), origin: try $0.decode(atIndex: 1), content: try $0.decode(atIndex: 2))
            }
        }
    }
}
