import GRDB
import SystemPackage

/// A guard that keeps a damaged database unchanged, byte for byte, if the database can't be opened.
///
/// Holds a read-only connection, which opens before the writing connection. If the database can't be opened, the read-only connection
/// closes last, so SQLite keeps the write-ahead log when the writing connection closes (sqlite.org/wal.html, section 2.1).
final class WALGuard: Sendable {
    private let connection: DatabaseQueue

    /// Opens the read-only connection, and checks the database before anything is written. Returns nil if there is no database yet, or if
    /// the database can't be opened read-only.
    ///
    /// - Throws: `DatabaseError` if the database is damaged. If the database has an older schema that will be migrated, every page is
    ///   checked.
    init?(of path: FilePath) throws {
        var configuration = Configuration()
        configuration.readonly = true
        do {
            connection = try DatabaseQueue(path: path.string, configuration: configuration)
            let problem = try connection.read { db in
                let version = try Int32.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                guard (1..<Schema.version).contains(version) else { return "ok" }
                return try String.fetchOne(db, sql: "PRAGMA quick_check(1)") ?? "ok"
            }
            guard problem == "ok" else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: problem) }
        } catch let error as DatabaseError {
            guard error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB else { return nil }
            throw error
        }
    }

    func close() {
        try? connection.close()
    }
}
