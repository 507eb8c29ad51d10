import GRDB

/// A row of the store, which may be damaged. Every read throws when the column is missing or holds a value of another type; GRDB's own
/// subscripts trap then.
///
/// The one way to read rows: `Tests/check-boundaries` refuses GRDB's `Row` elsewhere. Valid until the next row of the same cursor is read.
struct StoredRow {
    typealias Value = DatabaseValueConvertible & StatementColumnConvertible

    private let row: Row

    /// The first row of a query; nil if there is none.
    static func fetchOne(_ db: Database, sql: String, arguments: StatementArguments = StatementArguments()) throws -> StoredRow? {
        try Row.fetchOne(db, sql: sql, arguments: arguments).map(StoredRow.init)
    }

    /// The first row of a query; nil if there is none.
    static func fetchOne(_ statement: Statement, arguments: StatementArguments? = nil) throws -> StoredRow? {
        try Row.fetchOne(statement, arguments: arguments).map(StoredRow.init)
    }

    /// All rows of a query, which must have a limit.
    static func fetchAll(_ db: Database, sql: String, arguments: StatementArguments = StatementArguments()) throws -> [StoredRow] {
        try Row.fetchAll(db, sql: sql, arguments: arguments).map(StoredRow.init)
    }

    /// All rows of a query, which must have a limit.
    static func fetchAll(_ statement: Statement, arguments: StatementArguments? = nil) throws -> [StoredRow] {
        try Row.fetchAll(statement, arguments: arguments).map(StoredRow.init)
    }

    /// The rows of a query, one after the other.
    static func fetchCursor(
        _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
    ) throws -> some Cursor<StoredRow> {
        try Row.fetchCursor(db, sql: sql, arguments: arguments).map(StoredRow.init)
    }

    /// The rows of a query, one after the other.
    static func fetchCursor(_ statement: Statement, arguments: StatementArguments? = nil) throws -> some Cursor<StoredRow> {
        try Row.fetchCursor(statement, arguments: arguments).map(StoredRow.init)
    }

    /// Reads a column by its place, which takes no time to find.
    func decode<Result: Value>(_ type: Result.Type = Result.self, atIndex index: Int) throws -> Result {
        guard 0..<row.count ~= index else { throw UnreadableColumn(name: "number \(index)", type: "\(type)") }
        do {
            return try row.decode(type, atIndex: index)
        } catch {
            throw UnreadableColumn(name: Array(row.columnNames)[index], type: "\(type)")
        }
    }

    /// Reads a column by its name. A missing one is an error also where NULL is not.
    func decode<Result: Value>(_ type: Result.Type = Result.self, forColumn name: String) throws -> Result {
        guard row.hasColumn(name) else { throw UnreadableColumn(name: name, type: "\(type)") }
        do {
            return try row.decode(type, forColumn: name)
        } catch {
            throw UnreadableColumn(name: name, type: "\(type)")
        }
    }

    /// Reads a column that may hold a value of any type.
    func value(atIndex index: Int) throws -> DatabaseValue {
        guard 0..<row.count ~= index else { throw UnreadableColumn(name: "number \(index)", type: "value") }
        return row[index]
    }

    /// Reads a column that may hold a value of any type.
    func value(forColumn name: String) throws -> DatabaseValue {
        guard row.hasColumn(name) else { throw UnreadableColumn(name: name, type: "value") }
        return row[name]
    }

    /// All columns with what they hold.
    var columns: [(name: String, value: DatabaseValue)] { row.map { ($0.0, $0.1) } }
}

/// A column of a stored row that is missing, or holds a value of another type. Names no values: they may be secret.
struct UnreadableColumn: Error, CustomStringConvertible {
    var name: String
    var type: String

    var description: String { "the column \(name) does not hold a value of the type \(type)" }
}
