import Foundation
import GRDB
import GRDBSQLite

/// A prepared statement that inserts rows. Binds values directly with SQLite's functions, because one command can add 100,000 sessions.
///
/// Valid only within the database access that created it.
struct RowInsertion {
    private let statement: Statement
    private var column: Int32 = 0

    init(_ db: Database, _ sql: String) throws {
        statement = try db.cachedStatement(sql: sql)
    }

    // The `unsafe` calls below are sound: `statement` owns its SQLite handle, and outlives every call.

    mutating func bind(_ value: Int64?) {
        beginValue()
        if let value {
            unsafe sqlite3_bind_int64(statement.sqliteStatement, column, value)
        } else {
            unsafe sqlite3_bind_null(statement.sqliteStatement, column)
        }
    }

    mutating func bind(_ value: Bool?) {
        bind(value.map { $0 ? 1 : 0 } as Int64?)
    }

    mutating func bind(_ value: String?) {
        guard var value else { return bind(nil as Int64?) }
        beginValue()
        value.withUTF8 { bytes in
            _ = unsafe bytes.withMemoryRebound(to: CChar.self) {
                unsafe sqlite3_bind_text(statement.sqliteStatement, column, $0.baseAddress, Int32($0.count), Self.copyingDestructor)
            }
        }
    }

    mutating func bind(_ value: Data?) {
        guard let value else { return bind(nil as Int64?) }
        unsafe value.withUnsafeBytes { unsafe bind($0) }
    }

    mutating func bind(_ value: SessionID?) {
        guard let value else { return bind(nil as Int64?) }
        unsafe withUnsafeBytes(of: value.uuid.uuid) { unsafe bind($0) }
    }

    private mutating func bind(_ bytes: UnsafeRawBufferPointer) {
        beginValue()
        // An empty buffer may have no address. Binding a null pointer would store NULL instead of an empty BLOB.
        if let address = bytes.baseAddress {
            unsafe sqlite3_bind_blob(statement.sqliteStatement, column, address, Int32(bytes.count), Self.copyingDestructor)
        } else {
            unsafe sqlite3_bind_zeroblob(statement.sqliteStatement, column, 0)
        }
    }

    private mutating func beginValue() {
        // Values can be bound only to a statement that was reset, and an earlier use may not have reset the cached statement.
        if column == 0 { unsafe sqlite3_reset(statement.sqliteStatement) }
        column += 1
    }

    /// Inserts a row with the values that were bound since the last row.
    mutating func insert() throws {
        column = 0
        let result = unsafe sqlite3_step(statement.sqliteStatement)
        unsafe sqlite3_reset(statement.sqliteStatement)
        guard result == SQLITE_DONE else {
            let message = unsafe sqlite3_errmsg(sqlite3_db_handle(statement.sqliteStatement)).map { unsafe String(cString: $0) }
            throw DatabaseError(resultCode: ResultCode(rawValue: result), message: message)
        }
    }

    /// Makes SQLite copy the bound bytes: SQLITE_TRANSIENT (sqlite.org/c3ref/c_static.html), which Swift can't import.
    private static var copyingDestructor: sqlite3_destructor_type { unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self) }
}
