import GRDB
import SystemPackage

/// A connection that only reads, and is there before the one that writes and after it: as long as one is open, SQLite leaves the write-ahead
/// log alone when the other is closed (sqlite.org/wal.html, section 2.1). So a store that turns out to be damaged stays byte by byte what it was.
final class WALGuard: Sendable {
    private let connection: DatabaseQueue

    /// Looks at a store before anything is written; nil if there is none yet, or it can't be opened this way.
    ///
    /// - Throws: `DatabaseError` if it is damaged: of an older one, which is about to be migrated, every page is read for that.
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
