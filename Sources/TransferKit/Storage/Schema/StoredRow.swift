import GRDB

/// A row of the database, which may be damaged. Every read throws if the column is missing or contains a value of another type, whereas
/// GRDB's own subscripts trap.
///
/// All code must read rows this way: `Tests/check-boundaries` rejects GRDB's `Row` elsewhere. A row is valid until the next row of the same cursor is
/// read.
struct StoredRow {
    typealias Value = DatabaseValueConvertible & StatementColumnConvertible

    private let row: Row

    static func fetchOne(_ db: Database, sql: String, arguments: StatementArguments = StatementArguments()) throws -> StoredRow? {
        try Row.fetchOne(db, sql: sql, arguments: arguments).map(StoredRow.init)
    }

    static func fetchOne(_ statement: Statement, arguments: StatementArguments? = nil) throws -> StoredRow? {
        try Row.fetchOne(statement, arguments: arguments).map(StoredRow.init)
    }

    /// If a query can have very many rows, use a cursor instead.
    static func fetchAll(_ db: Database, sql: String, arguments: StatementArguments = StatementArguments()) throws -> [StoredRow] {
        try Row.fetchAll(db, sql: sql, arguments: arguments).map(StoredRow.init)
    }

    /// If a query can have very many rows, use a cursor instead.
    static func fetchAll(_ statement: Statement, arguments: StatementArguments? = nil) throws -> [StoredRow] {
        try Row.fetchAll(statement, arguments: arguments).map(StoredRow.init)
    }

    static func fetchCursor(_ statement: Statement, arguments: StatementArguments? = nil) throws -> some Cursor<StoredRow> {
        try Row.fetchCursor(statement, arguments: arguments).map(StoredRow.init)
    }

    /// Reads a column by its index, which is faster than a lookup by name.
    func decode<Result: Value>(_ type: Result.Type = Result.self, atIndex index: Int) throws -> Result {
        guard 0..<row.count ~= index else { throw UnreadableColumn(name: "number \(index)", type: "\(type)") }
        do {
            return try row.decode(type, atIndex: index)
        } catch {
            throw UnreadableColumn(name: Array(row.columnNames)[index], type: "\(type)")
        }
    }

    /// Reads a column by its name. A missing column is an error even for an optional type.
    func decode<Result: Value>(_ type: Result.Type = Result.self, forColumn name: String) throws -> Result {
        guard row.hasColumn(name) else { throw UnreadableColumn(name: name, type: "\(type)") }
        do {
            return try row.decode(type, forColumn: name)
        } catch {
            throw UnreadableColumn(name: name, type: "\(type)")
        }
    }

    /// Reads a column that can contain a value of any type.
    func value(atIndex index: Int) throws -> DatabaseValue {
        guard 0..<row.count ~= index else { throw UnreadableColumn(name: "number \(index)", type: "value") }
        return row[index]
    }

    func value(forColumn name: String) throws -> DatabaseValue {
        guard row.hasColumn(name) else { throw UnreadableColumn(name: name, type: "value") }
        return row[name]
    }

    var columns: [(name: String, value: DatabaseValue)] { row.map { ($0.0, $0.1) } }
}

/// The error for a column of a stored row that is missing, or contains a value of another type. The error contains no values, because values may be
/// secret.
struct UnreadableColumn: Error, CustomStringConvertible {
    var name: String
    var type: String

    var description: String { "the column \(name) has no value of the type \(type)" }
}
