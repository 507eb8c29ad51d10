import GRDB

/// The store's schema and how it came to be. A released migration never changes.
enum Migrations {
    /// "TKit" in ASCII, so that `file` and a curious person can tell whose database it is (sqlite.org/fileformat.html, section 1.3.19).
    static let applicationID: Int32 = 0x544B_6974

    /// The newest schema that this code reads and writes; stored as SQLite's user version.
    static let version: Int32 = 2

    /// Brings a store up to ``version``, each step in a transaction of its own.
    static func migrate(_ database: any DatabaseWriter) throws {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.execute(sql: schema1)
            try db.execute(sql: "PRAGMA application_id = \(applicationID)")
            try db.execute(sql: "PRAGMA user_version = 1")
        }
        migrator.registerMigration("2") { db in
            try db.execute(sql: changeLogSchema)
            try db.execute(sql: "PRAGMA user_version = 2")
        }
        try migrator.migrate(database)
    }

    private static let schema1 = """
        CREATE TABLE account (
            key INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            definition TEXT NOT NULL,           -- Account as JSON
            block TEXT                          -- AccountBlock as JSON
        ) STRICT;
        CREATE TABLE session (
            key INTEGER PRIMARY KEY,
            id BLOB NOT NULL UNIQUE,            -- the UUID's 16 bytes
            rank INTEGER NOT NULL,
            account INTEGER NOT NULL REFERENCES account(key),
            state TEXT NOT NULL,
            interrupted INTEGER NOT NULL DEFAULT 0,
            name TEXT NOT NULL,
            direction TEXT NOT NULL,
            tags TEXT NOT NULL,                 -- JSON array
            context BLOB,
            options TEXT NOT NULL,              -- SessionOptions as JSON
            endpoint TEXT,
            transport TEXT,
            files INTEGER NOT NULL,
            files_done INTEGER NOT NULL DEFAULT 0,
            files_failed INTEGER NOT NULL DEFAULT 0,
            bytes_total INTEGER NOT NULL,
            bytes_done INTEGER NOT NULL DEFAULT 0,  -- of completed files
            attempts INTEGER NOT NULL DEFAULT 0,
            error TEXT,                         -- TransferError as JSON
            created_at INTEGER NOT NULL,        -- milliseconds since 1970, as all times
            started_at INTEGER,
            ended_at INTEGER
        ) STRICT;
        CREATE INDEX session_rank ON session(rank);
        CREATE INDEX session_account ON session(account);
        CREATE TABLE file (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            source BLOB NOT NULL,               -- names are bytes
            destination BLOB NOT NULL,
            state TEXT NOT NULL,
            size INTEGER NOT NULL,
            generation INTEGER NOT NULL DEFAULT 1,
            receipt TEXT,                       -- TransferReceipt as JSON
            error TEXT,                         -- TransferError as JSON
            PRIMARY KEY (session, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE checkpoint (
            session INTEGER NOT NULL,
            position INTEGER NOT NULL,
            endpoint TEXT NOT NULL,
            generation INTEGER NOT NULL,
            data BLOB NOT NULL,                 -- the transport's own
            confirmed INTEGER NOT NULL,
            identity TEXT NOT NULL,             -- SourceIdentity as JSON
            PRIMARY KEY (session, position, endpoint),
            FOREIGN KEY (session, position) REFERENCES file(session, position) ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;
        """
}
