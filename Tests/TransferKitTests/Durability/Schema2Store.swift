import Foundation
import GRDB
import SystemPackage
import TransferCore
import TransferKit

/// A store as the second version left it: with its schema, its way of recording it, and the sessions of ``Schema1Store``.
enum Schema2Store {
    static func make(in folder: FilePath) throws {
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        let pool = try DatabasePool(path: folder.appending("queue.sqlite").string)
        try pool.write { db in
            try db.execute(sql: schema)
            try db.execute(
                sql: """
                    CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
                    INSERT INTO grdb_migrations VALUES ('1'), ('2');
                    PRAGMA application_id = \(0x544B_6974);
                    PRAGMA user_version = 2
                    """)
            try db.execute(
                sql: "INSERT INTO account(key, name, definition) VALUES (7, 'a', ?)", arguments: [try text(Schema1Store.account)])
            for (index, state) in Schema1Store.states.enumerated() { try insert(index, state, into: db) }
            try db.execute(
                sql: """
                    INSERT INTO total VALUES ('waiting', 2, 0, 0, 200, 0), ('running', 2, 0, 0, 200, 60), ('completed', 2, 2, 0, 200, 200),
                        ('failed', 2, 0, 1, 200, 0)
                    """)
        }
        try pool.close()
    }

    private static func text(_ value: some Encodable) throws -> String {
        String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
    }

    private static func insert(_ index: Int, _ state: String, into db: Database) throws {
        let (isCompleted, isFailed) = (state == "completed", state == "failed")
        let error = isFailed ? try text(TransferError(.permanent, .rejected, "Refused.")) : nil
        try db.execute(
            sql: """
                INSERT INTO session(key, account, name, direction, context, options, endpoint, transport, files, files_done, files_failed,
                    bytes_total, bytes_done, attempts, error, created_at, started_at, ended_at, milliseconds)
                VALUES (?, 7, ?, 'upload', ?, ?, 'memory://a/', 'memory', 2, ?, ?, 200, ?, 3, ?, 1000, 2000, ?, 500)
                """,
            arguments: [
                index + 1, "session \(index)", Data("\(index)".utf8), try text(SessionOptions(metadata: ["index": "\(index)"])),
                isCompleted ? 2 : 0, isFailed ? 1 : 0, isCompleted ? 200 : 0, error, isCompleted || isFailed ? 3_000 : nil,
            ])
        try db.execute(
            sql: """
                INSERT INTO schedule(session, id, rank, account, state, lane, mark, keeps_partial, completed_at)
                VALUES (?, ?, ?, 7, ?, 4, 0, 0, ?)
                """,
            arguments: [
                index + 1, Data(repeating: 9, count: 15) + [UInt8(index)], -1_000 * index, state, isCompleted ? 3_000 : nil,
            ])
        try db.execute(sql: "INSERT INTO session_tag VALUES ('x', ?1), (?2, ?1)", arguments: [index + 1, "tag \(index)"])
        for position in 0..<2 {
            let hasFailed = isFailed && position == 0
            try db.execute(
                sql: """
                    INSERT INTO file(session, position, kind, source, destination, state, size, generation, error)
                    VALUES (?, ?, 'file', ?, ?, ?, 100, 4, ?)
                    """,
                arguments: [
                    index + 1, position, Data("/no/such/\(index)".utf8), Data("file \(position)".utf8),
                    isCompleted ? "completed" : hasFailed ? "failed" : "pending", hasFailed ? error : nil,
                ])
        }
        guard state == "running" else { return }
        let identity = SourceIdentity(size: 100, modificationTime: 5, inode: 6, device: 7, bootID: "boot")
        try db.execute(
            sql: """
                INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity)
                VALUES (?, 0, 'memory://a/', 4, ?, 60, ?)
                """, arguments: [index + 1, Data("upload-1".utf8), try text(identity)])
    }

    private static let schema = """
        CREATE TABLE account (
            key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, definition TEXT NOT NULL, block TEXT
        ) STRICT;
        CREATE TABLE file (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE, position INTEGER NOT NULL, source BLOB NOT NULL,
            destination BLOB NOT NULL, state TEXT NOT NULL, size INTEGER NOT NULL, generation INTEGER NOT NULL DEFAULT 1, receipt TEXT,
            error TEXT, kind TEXT NOT NULL DEFAULT 'file', directory INTEGER, symbolic_links TEXT, PRIMARY KEY (session, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE checkpoint (
            session INTEGER NOT NULL, position INTEGER NOT NULL, endpoint TEXT NOT NULL, generation INTEGER NOT NULL, data BLOB NOT NULL,
            confirmed INTEGER NOT NULL, identity TEXT NOT NULL, PRIMARY KEY (session, position, endpoint),
            FOREIGN KEY (session, position) REFERENCES file(session, position) ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE schedule (
            session INTEGER PRIMARY KEY REFERENCES session(key) ON DELETE CASCADE, id BLOB NOT NULL, rank INTEGER NOT NULL,
            account INTEGER NOT NULL, state TEXT NOT NULL, lane INTEGER NOT NULL, mark INTEGER NOT NULL, keeps_partial INTEGER NOT NULL,
            displaced_by INTEGER, not_before INTEGER, after_id BLOB, after_any INTEGER, deduplication_key TEXT, completed_at INTEGER,
            needs_cheap_network INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE session (
            key INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES account(key), name TEXT NOT NULL, direction TEXT NOT NULL,
            context BLOB, options TEXT, endpoint TEXT, transport TEXT, files INTEGER NOT NULL, files_done INTEGER NOT NULL DEFAULT 0,
            files_failed INTEGER NOT NULL DEFAULT 0, bytes_total INTEGER NOT NULL, bytes_done INTEGER NOT NULL DEFAULT 0,
            attempts INTEGER NOT NULL DEFAULT 0, error TEXT, created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
            milliseconds INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE session_tag (
            tag TEXT NOT NULL, session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE, PRIMARY KEY (tag, session)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX session_tag_session ON session_tag(session);
        CREATE TABLE setting (name TEXT PRIMARY KEY, value INTEGER) STRICT, WITHOUT ROWID;
        CREATE TABLE discard (
            key INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, data BLOB NOT NULL, confirmed INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0, next_attempt_at INTEGER NOT NULL, give_up_at INTEGER NOT NULL, held_by INTEGER,
            position INTEGER
        ) STRICT;
        CREATE TABLE quarantine (
            key INTEGER PRIMARY KEY, found_at INTEGER NOT NULL, reason TEXT NOT NULL, content TEXT NOT NULL, session INTEGER
        ) STRICT;
        CREATE INDEX file_blob ON file(source) WHERE kind = 'blob';
        CREATE INDEX file_failed ON file(session, position) WHERE state = 'failed';
        CREATE TABLE directory (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE, number INTEGER NOT NULL, parent INTEGER,
            source BLOB NOT NULL, destination BLOB NOT NULL, PRIMARY KEY (session, number)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE item (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE, sequence INTEGER NOT NULL, kind TEXT NOT NULL,
            directory INTEGER, source BLOB NOT NULL, destination BLOB NOT NULL, size INTEGER NOT NULL, symbolic_links TEXT NOT NULL,
            first_position INTEGER, first_directory INTEGER, PRIMARY KEY (session, sequence)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX item_blob ON item(source) WHERE kind = 'blob';
        CREATE TABLE base_folder (only INTEGER PRIMARY KEY CHECK (only = 1), path BLOB NOT NULL) STRICT;
        CREATE TABLE event (
            revision INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL, sessions BLOB, number INTEGER, detail TEXT,
            weight INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE total (
            state TEXT PRIMARY KEY, files INTEGER NOT NULL, files_done INTEGER NOT NULL, files_failed INTEGER NOT NULL,
            bytes_total INTEGER NOT NULL, bytes_done INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE removal (session INTEGER PRIMARY KEY, quarantine INTEGER) STRICT;
        CREATE TABLE quarantined_row (
            number INTEGER PRIMARY KEY, quarantine INTEGER NOT NULL, origin TEXT NOT NULL, content TEXT NOT NULL
        ) STRICT;
        CREATE INDEX quarantined_row_quarantine ON quarantined_row(quarantine, number);
        """
}
