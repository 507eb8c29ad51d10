import CPostgres
package import Foundation
package import TransferKit

/// A row of a query's result. Values are text, as PostgreSQL prints them.
package struct PostgresRow: Sendable {
    private let values: [String?]

    static func rows(of result: OpaquePointer) -> [PostgresRow] {
        let (rows, columns) = unsafe (PQntuples(result), PQnfields(result))
        return (0..<max(0, rows)).map { row in
            PostgresRow(
                values: (0..<max(0, columns)).map { column in
                    guard unsafe PQgetisnull(result, row, column) == 0, let text = unsafe PQgetvalue(result, row, column) else {
                        return nil
                    }
                    return unsafe String(cString: text)
                })
        }
    }

    /// The text of a column; nil for NULL.
    package func optional(_ column: Int) throws(PostgresError) -> String? {
        guard values.indices.contains(column) else { throw .unreadable("column \(column) is missing") }
        return values[column]
    }

    package func text(_ column: Int) throws(PostgresError) -> String {
        guard let text = try optional(column) else { throw .unreadable("column \(column) is NULL") }
        return text
    }

    package func integer(_ column: Int) throws(PostgresError) -> Int64 {
        let text = try text(column)
        guard let number = Int64(text) else { throw .unreadable("\(text) is not an integer") }
        return number
    }

    package func optionalInteger(_ column: Int) throws(PostgresError) -> Int64? {
        try optional(column) == nil ? nil : try integer(column)
    }

    package func flag(_ column: Int) throws(PostgresError) -> Bool { try text(column) == "t" }

    package func session(_ column: Int) throws(PostgresError) -> SessionID {
        let text = try text(column)
        guard let id = SessionID(text) else { throw .unreadable("\(text) is not a session ID") }
        return id
    }

    /// A time, which a query must convert to seconds since 1970: `extract(epoch FROM …)`.
    package func date(_ column: Int) throws(PostgresError) -> Date? {
        guard let text = try optional(column) else { return nil }
        guard let seconds = Double(text) else { throw .unreadable("\(text) is not a time") }
        return Date(timeIntervalSince1970: seconds)
    }

    package func json<Value: Decodable>(_ type: Value.Type, _ column: Int) throws(PostgresError) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(try text(column).utf8))
        } catch let error as PostgresError {
            throw error
        } catch {
            throw .unreadable("\(type) can't be decoded")
        }
    }

    /// A value that is stored as JSON, or nil for NULL and for a value that can't be read. Stores the first error in `problem`, so that a
    /// list can show the other rows.
    func readable<Value: Decodable>(_ type: Value.Type, _ column: Int, _ problem: inout TransferError?) throws(PostgresError) -> Value? {
        guard try optional(column) != nil else { return nil }
        do throws(PostgresError) {
            return try json(type, column)
        } catch {
            problem = problem ?? .unreadable(error)
            return nil
        }
    }
}

/// Encodes values for parameters of statements.
enum PostgresValue {
    static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    /// An array in PostgreSQL's text form (PostgreSQL manual, section 8.15.6).
    static func array(_ texts: some Sequence<String?>) -> String {
        let elements = texts.map { text in
            guard let text else { return "NULL" }
            return "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        }
        return "{" + elements.joined(separator: ",") + "}"
    }

    static func date(_ date: Date?) -> String? {
        date.map { "\($0.timeIntervalSince1970)" }
    }
}
