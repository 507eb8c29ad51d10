import Foundation
import GRDB
import SystemPackage
import TransferCore
import TransportTesting

@testable import TransferKit

/// A queue's database with rows in each table. Its tables lack `STRICT` and `NOT NULL`, so most columns accept nulls and values of any type. The
/// database can therefore contain the same values as a damaged file. The process creates the database once, and ``damage(_:)`` restores the original
/// rows before each input.
struct DamagedDatabase: Sendable {
    struct Column: Sendable {
        var table: String
        var name: String
    }

    let store: QueueStore
    let tables: [String]
    let columns: [Column]

    /// Creates the database. Its files are in memory, because writing and syncing the changes of each input would be slow on a disk.
    init() async throws {
        let folder = FilePath("/dev/shm/transferkit-fuzzing-\(ProcessInfo.processInfo.processIdentifier)")
        try? FileManager.default.removeItem(atPath: folder.string)
        try await Self.fill(folder)
        try Self.relax(folder.appending("queue.sqlite"))
        store = try await QueueStore.open(.folder(folder), clock: .system)
        (tables, columns) = try await store.pool.write { db in
            let tables = try String.fetchAll(
                db,
                sql: """
                    SELECT name FROM sqlite_schema WHERE type = 'table'
                        AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'grdb_%' ORDER BY name
                    """)
            var columns: [Column] = []
            for table in tables {
                columns += try db.columns(in: table).map { Column(table: table, name: $0.name) }
                try Self.fillIfEmpty(table, db)
                try db.execute(sql: "CREATE TABLE saved_\(table) AS SELECT * FROM \(table)")
            }
            return (tables, columns)
        }
    }

    private static func fill(_ folder: FilePath) async throws {
        let memory = MemoryTransport()
        let queue = try await TransferQueue(storage: .folder(folder), transports: [memory])
        try await queue.save(Account("a", endpoints: [memory.endpoint()]))
        let items: [TransferItem] = [
            .data(Data([1, 2, 3]), as: try RemotePath("a/b")), TransferItem("/etc/hostname"), TransferItem("/etc/apt"),
        ]
        for _ in 0..<3 {
            _ = try await queue.enqueue(.upload(items: items, to: "a", tags: ["tag"], context: Data([7])), held: true)
        }
        _ = try await queue.enqueue(.download(items: [.remoteFolder(try RemotePath("c"))], from: "a", to: folder), held: true)
        await queue.shutdown()
    }

    /// Removes `STRICT` and `NOT NULL` from the tables, so that columns accept nulls and values of any type.
    private static func relax(_ database: FilePath) throws {
        let queue = try DatabaseQueue(path: database.string)
        try queue.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    PRAGMA writable_schema = ON;
                    UPDATE sqlite_schema SET sql = replace(replace(replace(sql, ') STRICT, WITHOUT', ') WITHOUT'), ') STRICT', ')'), ' NOT NULL', '')
                        WHERE type = 'table' AND name NOT LIKE 'grdb_%';
                    PRAGMA writable_schema = OFF;
                    """)
        }
        try queue.close()
    }

    /// Inserts a row into a table that the queue left empty.
    private static func fillIfEmpty(_ table: String, _ db: Database) throws {
        guard try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") == 0 else { return }
        let values = try db.columns(in: table).map { column in
            switch (column.name, column.type) {
            case ("endpoint", _): "'{\"transport\":\"memory\",\"address\":\"memory://memory/\",\"credentials\":[],\"settings\":{}}'"
            case ("identity", _): "'null'"
            case ("quarantine", _), ("held_by", _): "NULL"
            case (_, "INTEGER"): "1"
            case (_, "BLOB"): "x'6162'"
            default: "'{}'"
            }
        }
        try db.execute(sql: "PRAGMA foreign_keys = OFF")
        try db.execute(sql: "INSERT INTO \(table) VALUES (\(values.joined(separator: ",")))")
    }

    /// Restores all original rows, and then changes the values of columns in all rows of their tables.
    func damage(_ changes: [(column: Column, value: DatabaseValue)]) async {
        try? await store.pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA foreign_keys = OFF")
            try db.inTransaction {
                for table in tables { try db.execute(sql: "DELETE FROM \(table); INSERT INTO \(table) SELECT * FROM saved_\(table)") }
                for (column, value) in changes {
                    // Ignore errors: if the values of a column must be unique, the column can't be changed like this.
                    try? db.execute(sql: "UPDATE \(column.table) SET \(column.name) = ?", arguments: [value])
                }
                return .commit
            }
            try db.execute(sql: "PRAGMA foreign_keys = ON")
        }
    }
}
