import GRDB

/// The store's schema and how it came to be. A released migration never changes.
enum Migrations {
    /// "TKit" in ASCII, so that `file` and a curious person can tell whose database it is (sqlite.org/fileformat.html, section 1.3.19).
    static let applicationID: Int32 = 0x544B_6974

    /// The newest schema that this code reads and writes; stored as SQLite's user version.
    static let version: Int32 = 5

    /// Brings a store up to ``version``, each step in a transaction of its own.
    static func migrate(_ database: any DatabaseWriter) throws {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.execute(sql: schema1)
            try db.execute(sql: "PRAGMA application_id = \(applicationID)")
            try db.execute(sql: "PRAGMA user_version = 1")
        }
        migrator.registerMigration("2") { db in
            try db.execute(sql: sessions2)
            try migrateItems(db)
            try db.execute(sql: changeLogSchema)
            try db.execute(sql: totals)
            try db.execute(sql: removalSchema)
            try db.execute(sql: "PRAGMA user_version = 2")
        }
        migrator.registerMigration("3") { db in
            try db.execute(sql: payloads)
            try db.execute(sql: "PRAGMA user_version = 3")
        }
        // It refers to nothing, so that nothing has to be checked, which takes long in a large store.
        migrator.registerMigration("4", foreignKeyChecks: .immediate) { db in
            try db.execute(sql: remoteFolders)
            try db.execute(sql: "PRAGMA user_version = 4")
        }
        migrator.registerMigration("5", foreignKeyChecks: .immediate) { db in
            try db.execute(sql: outbox)
            try db.execute(sql: "PRAGMA user_version = 5")
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

    /// What the scheduler needs of each session is in narrow rows of its own, which alone are read at opening.
    private static let sessions2 = """
        CREATE TABLE schedule (
            session INTEGER PRIMARY KEY REFERENCES session(key) ON DELETE CASCADE,
            id BLOB NOT NULL,                   -- the UUID's 16 bytes
            rank INTEGER NOT NULL,              -- the order of the queue
            account INTEGER NOT NULL,
            state TEXT NOT NULL,
            lane INTEGER NOT NULL,              -- 0 now, 1 next, 2 let go, 3 interrupted, 4 by rank
            mark INTEGER NOT NULL,              -- in lanes 0 and 1 the highest goes first
            keeps_partial INTEGER NOT NULL,
            displaced_by INTEGER,               -- the session that was run in its place
            not_before INTEGER,                 -- milliseconds since 1970, as all times
            after_id BLOB,                      -- the session that it comes after, until that has ended
            after_any INTEGER,
            deduplication_key TEXT,
            completed_at INTEGER,
            needs_cheap_network INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        INSERT INTO schedule(session, id, rank, account, state, lane, mark, keeps_partial, completed_at)
            SELECT key, id, rank, account, state, CASE WHEN interrupted THEN 3 ELSE 4 END, 0, 0,
                CASE WHEN state = 'completed' THEN ended_at END FROM session ORDER BY key;

        CREATE TABLE session2 (
            key INTEGER PRIMARY KEY,
            account INTEGER NOT NULL REFERENCES account(key),
            name TEXT NOT NULL,
            direction TEXT NOT NULL,
            context BLOB,
            options TEXT,                       -- SessionOptions as JSON; NULL for the defaults
            endpoint TEXT,
            transport TEXT,
            files INTEGER NOT NULL,
            files_done INTEGER NOT NULL DEFAULT 0,
            files_failed INTEGER NOT NULL DEFAULT 0,
            bytes_total INTEGER NOT NULL,
            bytes_done INTEGER NOT NULL DEFAULT 0,  -- of completed files
            attempts INTEGER NOT NULL DEFAULT 0,
            error TEXT,                         -- TransferError as JSON
            created_at INTEGER NOT NULL,
            started_at INTEGER,
            ended_at INTEGER,
            milliseconds INTEGER NOT NULL DEFAULT 0 -- how long it ran
        ) STRICT;
        INSERT INTO session2 SELECT key, account, name, direction, context, options, endpoint, transport, files, files_done, files_failed,
            bytes_total, bytes_done, attempts, error, created_at, started_at, ended_at, 0 FROM session ORDER BY key;
        CREATE TABLE session_tag (
            tag TEXT NOT NULL,
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE,
            PRIMARY KEY (tag, session)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX session_tag_session ON session_tag(session);
        INSERT OR IGNORE INTO session_tag SELECT value, session.key FROM session, json_each(session.tags);
        DROP TABLE session;
        ALTER TABLE session2 RENAME TO session;

        CREATE TABLE setting (
            name TEXT PRIMARY KEY,
            value INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE discard (                  -- what is left at servers and is to be removed there
            key INTEGER PRIMARY KEY,
            endpoint TEXT NOT NULL,             -- Endpoint as JSON
            data BLOB NOT NULL,                 -- the transport's own
            confirmed INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            next_attempt_at INTEGER NOT NULL,
            give_up_at INTEGER NOT NULL,
            held_by INTEGER,                    -- the session, removed, whose run may still complete the file
            position INTEGER
        ) STRICT;
        CREATE TABLE quarantine (               -- what could not be read, as it was
            key INTEGER PRIMARY KEY,
            found_at INTEGER NOT NULL,
            reason TEXT NOT NULL,
            content TEXT NOT NULL               -- the row as JSON, BLOBs in hexadecimal digits
        ) STRICT;
        """
}
