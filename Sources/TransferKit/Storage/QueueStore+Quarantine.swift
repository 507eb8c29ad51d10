public import Foundation
import GRDB

/// Something of the store that could not be read, and was set aside rather than stop everything else.
public struct QuarantinedRow: Hashable, Sendable {
    /// When it was found.
    public var foundAt: Date
    /// What could not be read, and why.
    public var reason: String
    /// The row as it was, as JSON.
    public var content: String
}

extension QueueStore {
    static func quarantine(_ key: SessionKey, _ reason: String, in db: Database) throws {
        var content: [String: String] = [:]
        for table in ["schedule", "session"] {
            let column = table == "schedule" ? "session" : "key"
            guard let row = try Row.fetchOne(db, sql: "SELECT * FROM \(table) WHERE \(column) = ?", arguments: [key]) else { continue }
            for (name, value) in row { content["\(table).\(name)"] = text(of: value) }
        }
        let files = try Row.fetchAll(db, sql: "SELECT * FROM file WHERE session = ? ORDER BY position LIMIT 1000", arguments: [key])
        for (index, row) in files.enumerated() {
            for (name, value) in row { content["file[\(index)].\(name)"] = text(of: value) }
        }
        try execute(
            db, "INSERT INTO quarantine(found_at, reason, content) VALUES (?, ?, ?)",
            [StoreCoding.encode(Date()), reason, try StoreCoding.encode(content)])
        // All by name: what a damaged store lacks does not cascade.
        for table in ["file", "directory", "item", "session_tag", "schedule"] {
            try execute(db, "DELETE FROM \(table) WHERE session = ?", [key])
        }
        try execute(db, "DELETE FROM session WHERE key = ?", [key])
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
            try Row.fetchAll(db, sql: "SELECT found_at, reason, content FROM quarantine ORDER BY key").map {
                QuarantinedRow(foundAt: StoreCoding.date($0[0]), reason: $0[1], content: $0[2])
            }
        }
    }
}
