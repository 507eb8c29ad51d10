import Foundation
import GRDB
import SystemPackage
import TransferCore
import TransferKit

/// A store as the first version left it: with its schema, its way of recording it, and a session in each of its states.
enum Schema1Store {
    static let states = ["waiting", "running", "completed", "failed"]

    static func make(in folder: FilePath) throws {
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        let pool = try DatabasePool(path: folder.appending("queue.sqlite").string)
        try pool.write { db in
            try db.execute(sql: schema)
            try db.execute(
                sql: "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY); INSERT INTO grdb_migrations VALUES ('1')")
            try db.execute(sql: "PRAGMA application_id = \(0x544B_6974); PRAGMA user_version = 1")
            try db.execute(
                sql: "INSERT INTO account(key, name, definition) VALUES (7, 'a', ?)",
                arguments: [String(decoding: try JSONEncoder().encode(account), as: UTF8.self)])
            for (index, state) in states.enumerated() { try insert(index, state, into: db) }
        }
        try pool.close()
    }

    static let account = Account("a", endpoints: [Endpoint(transport: "memory", address: "memory://a/")], rateLimit: 5_000)

    static func id(_ index: Int) -> SessionID { SessionID(uuid: UUID(uuid: (9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, UInt8(index)))) }

    private static func insert(_ index: Int, _ state: String, into db: Database) throws {
        let hasEnded = state == "completed" || state == "failed"
        let error =
            state == "failed"
            ? String(decoding: try JSONEncoder().encode(TransferError(.permanent, .rejected, "Refused.")), as: UTF8.self) : nil
        let options = String(decoding: try JSONEncoder().encode(SessionOptions(metadata: ["index": "\(index)"])), as: UTF8.self)
        try db.execute(
            sql: """
                INSERT INTO session(key, id, rank, account, state, interrupted, name, direction, tags, context, options, endpoint, transport,
                    files, files_done, files_failed, bytes_total, bytes_done, attempts, error, created_at, started_at, ended_at)
                VALUES (?, ?, ?, 7, ?, 0, ?, 'upload', ?, ?, ?, 'memory://a/', 'memory', 2, ?, ?, 200, ?, 3, ?, 1000, 2000, ?)
                """,
            arguments: [
                index + 1, Data(repeating: 9, count: 15) + [UInt8(index)], -1_000 * index, state, "session \(index)",
                #"["x","tag \#(index)","x"]"#, Data("\(index)".utf8), options, state == "completed" ? 2 : 0, state == "failed" ? 1 : 0,
                state == "completed" ? 200 : 0, error, hasEnded ? 3_000 : nil,
            ])
        for position in 0..<2 {
            try db.execute(
                sql:
                    "INSERT INTO file(session, position, source, destination, state, size, generation, error) VALUES (?, ?, ?, ?, ?, 100, 4, ?)",
                arguments: [
                    index + 1, position, Data("/no/such/\(index)".utf8), Data("file \(position)".utf8),
                    state == "completed" ? "completed" : state == "failed" && position == 0 ? "failed" : "pending",
                    state == "failed" && position == 0 ? error : nil,
                ])
        }
        guard state == "running" else { return }
        let identity = SourceIdentity(size: 100, modificationTime: 5, inode: 6, device: 7, bootID: "boot")
        try db.execute(
            sql:
                "INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity) VALUES (?, 0, 'memory://a/', 4, ?, 60, ?)",
            arguments: [index + 1, Data("upload-1".utf8), String(decoding: try JSONEncoder().encode(identity), as: UTF8.self)])
    }

    private static let schema = """
        CREATE TABLE account (
            key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, definition TEXT NOT NULL, block TEXT
        ) STRICT;
        CREATE TABLE session (
            key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, rank INTEGER NOT NULL, account INTEGER NOT NULL REFERENCES account(key),
            state TEXT NOT NULL, interrupted INTEGER NOT NULL DEFAULT 0, name TEXT NOT NULL, direction TEXT NOT NULL, tags TEXT NOT NULL,
            context BLOB, options TEXT NOT NULL, endpoint TEXT, transport TEXT, files INTEGER NOT NULL,
            files_done INTEGER NOT NULL DEFAULT 0, files_failed INTEGER NOT NULL DEFAULT 0, bytes_total INTEGER NOT NULL,
            bytes_done INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, error TEXT, created_at INTEGER NOT NULL,
            started_at INTEGER, ended_at INTEGER
        ) STRICT;
        CREATE INDEX session_rank ON session(rank);
        CREATE INDEX session_account ON session(account);
        CREATE TABLE file (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE, position INTEGER NOT NULL, source BLOB NOT NULL,
            destination BLOB NOT NULL, state TEXT NOT NULL, size INTEGER NOT NULL, generation INTEGER NOT NULL DEFAULT 1, receipt TEXT,
            error TEXT, PRIMARY KEY (session, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE checkpoint (
            session INTEGER NOT NULL, position INTEGER NOT NULL, endpoint TEXT NOT NULL, generation INTEGER NOT NULL, data BLOB NOT NULL,
            confirmed INTEGER NOT NULL, identity TEXT NOT NULL, PRIMARY KEY (session, position, endpoint),
            FOREIGN KEY (session, position) REFERENCES file(session, position) ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;
        """
}
