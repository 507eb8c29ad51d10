import GRDB

/// The tables of the database. Dates are milliseconds since 1970, and durations are milliseconds. File names are BLOBs.
enum Schema {
    /// "TKit" in ASCII, which identifies the database, for example for file(1) (sqlite.org/fileformat.html, section 1.3.19).
    static let applicationID: Int32 = 0x544B_6974

    /// The newest schema that this version reads and writes; stored as SQLite's user version.
    static let version: Int32 = 13

    /// The oldest schema that this version migrates to ``version``.
    static let oldestVersion: Int32 = 5

    /// Creates the tables of a new database, or migrates the tables of an older database to ``version``.
    ///
    /// Never change a released migration. Add a new migration after the last one for each change to the schema.
    static func migrate(_ database: any DatabaseWriter) throws {
        // Skips the check of all foreign keys. No migration changes a key, and the check would reject a database with a damaged row.
        var migrator = DatabaseMigrator().disablingDeferredForeignKeyChecks()
        migrator.registerMigration("5") { db in
            for tables in [sessionTables, fileTables, removalTables, queueTables] { try db.execute(sql: tables) }
            try db.execute(sql: "PRAGMA application_id = \(applicationID)")
            try db.execute(sql: "PRAGMA user_version = 5")
        }
        migrator.registerMigration("6") { db in
            // The steady date (Scheduler.steadyDate) from which the deadline of a session is measured; NULL: the session has not started.
            try db.execute(sql: "ALTER TABLE session ADD COLUMN deadline_from INTEGER")
            try db.execute(sql: "PRAGMA user_version = 6")
        }
        migrator.registerMigration("7") { db in
            // The URL at which the upload of an item is created, a capability; NULL: the session's URL.
            for table in ["file", "item"] { try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN creation_url TEXT") }
            try db.execute(sql: "PRAGMA user_version = 7")
        }
        migrator.registerMigration("8") { db in
            // Whether the session has transferred bytes or has listed a remote folder. For older sessions: whether the session has started.
            try db.execute(
                sql: """
                    ALTER TABLE schedule ADD COLUMN has_transferred INTEGER NOT NULL DEFAULT 0;
                    UPDATE schedule SET has_transferred = 1 WHERE session IN (SELECT key FROM session WHERE started_at IS NOT NULL);
                    PRAGMA user_version = 8;
                    """)
        }
        migrator.registerMigration("9") { db in
            for table in ["file", "item"] {
                // The parts of a form as JSON (FormContent); NULL for other kinds.
                try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN form TEXT")
                try db.execute(sql: "CREATE INDEX \(table)_form ON \(table)(source) WHERE kind = 'form'")
            }
            try db.execute(sql: "PRAGMA user_version = 9")
        }
        migrator.registerMigration("10") { db in
            // The session's account as JSON, if the session's checkpoints must still be moved to the table discard; NULL: the checkpoints
            // are deleted.
            try db.execute(sql: "ALTER TABLE removal ADD COLUMN account TEXT")
            // 1: a run of the session has not ended, and can still complete a file. The rows stay until the run ends.
            try db.execute(sql: "ALTER TABLE removal ADD COLUMN is_held INTEGER NOT NULL DEFAULT 0")
            try db.execute(sql: "PRAGMA user_version = 10")
        }
        migrator.registerMigration("11") { db in
            // The session's deadline in milliseconds, and the steady date from which the deadline is measured; NULL: no deadline, or not
            // started.
            for column in ["deadline", "deadline_from"] { try db.execute(sql: "ALTER TABLE schedule ADD COLUMN \(column) INTEGER") }
            try db.execute(
                sql: "UPDATE schedule SET deadline_from = (SELECT deadline_from FROM session WHERE session.key = schedule.session)")
            try db.execute(sql: "ALTER TABLE session DROP COLUMN deadline_from")
            for row in try StoredRow.fetchAll(db, sql: "SELECT key, options FROM session WHERE instr(options, '\"deadline\"') > 0") {
                // Unreadable options are reported when the session is read.
                let options = try? StoreCoding.decode(SessionOptions.self, from: row.decode(String.self, atIndex: 1))
                guard let deadline = options?.deadline else { continue }
                try db.execute(
                    sql: "UPDATE schedule SET deadline = ? WHERE session = ?",
                    arguments: [StoreCoding.encode(deadline), try row.decode(SessionKey.self, atIndex: 0)])
            }
            try db.execute(sql: "PRAGMA user_version = 11")
        }
        migrator.registerMigration("12") { db in
            // The time that the session's attempts spent in each phase of the transfer, as JSON (TransferTimes); NULL: no attempt.
            try db.execute(sql: "ALTER TABLE session ADD COLUMN times TEXT")
            try db.execute(sql: "PRAGMA user_version = 12")
        }
        migrator.registerMigration("13") { db in
            // The place at which the expansion of a local folder resumes, as JSON ([FolderResumePoint]); NULL: no rows of the folder are in the
            // manifest. A folder that could not be read completely keeps this place for a retry.
            for table in ["item", "file"] { try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN place TEXT") }
            try db.execute(sql: "PRAGMA user_version = 13")
        }
        try migrator.migrate(database)
    }

    private static let sessionTables = """
        CREATE TABLE account (
            key INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            definition TEXT NOT NULL,           -- Account as JSON
            block TEXT                          -- AccountBlock as JSON
        ) STRICT;
        CREATE TABLE session (
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
            milliseconds INTEGER NOT NULL DEFAULT 0, -- the running time
            folder BLOB                         -- the local folder for downloads
        ) STRICT;
        -- For each session, the data that the scheduler needs. The rows are small, because the queue reads all of them when it is opened.
        CREATE TABLE schedule (
            session INTEGER PRIMARY KEY REFERENCES session(key) ON DELETE CASCADE,
            id BLOB NOT NULL,                   -- the UUID's 16 bytes
            rank INTEGER NOT NULL,              -- the order of the queue
            account INTEGER NOT NULL,
            state TEXT NOT NULL,
            lane INTEGER NOT NULL,              -- the start priority: 0 now, 1 next, 2 released, 3 interrupted, 4 none
            mark INTEGER NOT NULL,              -- in lanes 0 and 1, sessions with higher marks start first
            keeps_partial INTEGER NOT NULL,
            displaced_by INTEGER,               -- the session that displaced this session
            not_before INTEGER,
            after_id BLOB,                      -- the session on which this session depends
            after_any INTEGER,                  -- 1: the other session need only have ended; 0: it must have completed
            deduplication_key TEXT,
            completed_at INTEGER,
            needs_cheap_network INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE session_tag (
            tag TEXT NOT NULL,
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE,
            PRIMARY KEY (tag, session)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX session_tag_session ON session_tag(session);
        -- The totals of all sessions in each state, updated with every change.
        CREATE TABLE total (
            state TEXT PRIMARY KEY,
            files INTEGER NOT NULL,
            files_done INTEGER NOT NULL,
            files_failed INTEGER NOT NULL,
            bytes_total INTEGER NOT NULL,
            bytes_done INTEGER NOT NULL         -- the bytes of completed files, and the confirmed bytes of other files
        ) STRICT, WITHOUT ROWID;
        """

    private static let fileTables = """
        -- If a file is in a folder, directory is the folder's number, source is the file's own name, and destination is empty.
        CREATE TABLE file (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            source BLOB NOT NULL,
            destination BLOB NOT NULL,
            state TEXT NOT NULL,
            size INTEGER NOT NULL,
            generation INTEGER NOT NULL DEFAULT 1,
            receipt TEXT,                       -- TransferReceipt as JSON
            error TEXT,                         -- TransferError as JSON
            kind TEXT NOT NULL DEFAULT 'file',
            directory INTEGER,
            symbolic_links TEXT,                -- the policy of a folder that could not be read, or of a file
            upload_url TEXT,                    -- a capability
            unsized INTEGER NOT NULL DEFAULT 0, -- 1: the size is not known yet, and stored as 0
            PRIMARY KEY (session, position)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX file_blob ON file(source) WHERE kind = 'blob';
        CREATE INDEX file_failed ON file(session, position) WHERE state = 'failed';
        CREATE INDEX file_listed ON file(session, directory, source) WHERE kind = 'download' AND directory IS NOT NULL;
        CREATE INDEX file_stream ON file(source) WHERE kind = 'stream';
        CREATE INDEX file_unsized ON file(session) WHERE unsized = 1;
        CREATE TABLE directory (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            parent INTEGER,                     -- NULL: source and destination are complete paths
            source BLOB NOT NULL,
            destination BLOB NOT NULL,
            PRIMARY KEY (session, number)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX directory_parent ON directory(session, parent, source);
        -- Items that have no rows in file yet: folders that must be read, and the items after them.
        CREATE TABLE item (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE,
            sequence INTEGER NOT NULL,
            kind TEXT NOT NULL,
            directory INTEGER,                  -- as in the table file
            source BLOB NOT NULL,
            destination BLOB NOT NULL,
            size INTEGER NOT NULL,
            symbolic_links TEXT NOT NULL,
            first_position INTEGER,             -- for a folder that is being read: its first position in the table file; NULL: not begun
            first_directory INTEGER,            -- for a folder that is being read: its first number in the table directory; NULL: not begun
            upload_url TEXT,
            unsized INTEGER NOT NULL DEFAULT 0,
            next_directory INTEGER,             -- for a remote folder: the next folder to list; NULL: no folder has been listed
            PRIMARY KEY (session, sequence)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX item_blob ON item(source) WHERE kind = 'blob';
        CREATE INDEX item_stream ON item(session) WHERE kind = 'stream';
        CREATE INDEX item_unsized ON item(session) WHERE unsized = 1;
        CREATE TABLE checkpoint (
            session INTEGER NOT NULL,
            position INTEGER NOT NULL,
            endpoint TEXT NOT NULL,
            generation INTEGER NOT NULL,
            data BLOB NOT NULL,                 -- opaque; only the transport reads it
            confirmed INTEGER NOT NULL,
            identity TEXT NOT NULL,             -- SourceIdentity as JSON
            expires_at INTEGER,
            PRIMARY KEY (session, position, endpoint),
            FOREIGN KEY (session, position) REFERENCES file(session, position) ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;
        """

    private static let removalTables = """
        -- Unfinished uploads on servers, and part files, until they are removed.
        CREATE TABLE discard (
            key INTEGER PRIMARY KEY,
            endpoint TEXT NOT NULL,             -- Endpoint as JSON
            data BLOB NOT NULL,                 -- opaque; only the transport reads it
            confirmed INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            next_attempt_at INTEGER NOT NULL,
            give_up_at INTEGER NOT NULL,
            held_by INTEGER,                    -- the removed session whose run may still complete the file
            position INTEGER,
            left_alone_until INTEGER NOT NULL DEFAULT 0 -- the time until which the server asked the queue to back off; 0: it did not ask
        ) STRICT;
        CREATE INDEX discard_due ON discard(next_attempt_at) WHERE held_by IS NULL;
        CREATE INDEX discard_part ON discard(next_attempt_at) WHERE held_by IS NULL
            AND CASE WHEN json_valid(endpoint) THEN json_extract(endpoint, '$.transport') END = 'transferkit-parts';
        CREATE INDEX discard_put_off ON discard(key, left_alone_until) WHERE held_by IS NULL AND next_attempt_at > 0;
        CREATE INDEX discard_left_alone ON discard(left_alone_until) WHERE left_alone_until > 0;
        CREATE INDEX discard_held ON discard(held_by) WHERE held_by IS NOT NULL;
        -- Removed sessions, whose rows are deleted in several transactions.
        CREATE TABLE removal (
            session INTEGER PRIMARY KEY,
            quarantine INTEGER                  -- the quarantine that receives the rows; NULL: they are deleted
        ) STRICT;
        -- Sessions in quarantine, with their content as it was found.
        CREATE TABLE quarantine (
            key INTEGER PRIMARY KEY,
            found_at INTEGER NOT NULL,
            reason TEXT NOT NULL,
            content TEXT NOT NULL,              -- the row as JSON, BLOBs in hexadecimal digits
            session INTEGER
        ) STRICT;
        CREATE TABLE quarantined_row (
            number INTEGER PRIMARY KEY,
            quarantine INTEGER NOT NULL,
            origin TEXT NOT NULL,               -- the original table
            content TEXT NOT NULL               -- the row as JSON, BLOBs in hexadecimal digits
        ) STRICT;
        CREATE INDEX quarantined_row_quarantine ON quarantined_row(quarantine, number);
        """

    private static let queueTables = """
        CREATE TABLE setting (
            name TEXT PRIMARY KEY,
            value INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE base_folder (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            path BLOB NOT NULL                  -- the folder to which source paths without a leading slash are relative
        ) STRICT;
        -- The change log: the last events of the queue, each written in the transaction that made the change.
        CREATE TABLE event (
            revision INTEGER PRIMARY KEY,
            time INTEGER NOT NULL,
            kind TEXT NOT NULL,
            sessions BLOB,                      -- session IDs of 16 bytes each; not stored if there are too many
            number INTEGER,                     -- an index, position, order revision or time, depending on the kind
            detail TEXT,                        -- other members of the event, as JSON
            weight INTEGER NOT NULL             -- the total size in bytes of this event and all earlier events
        ) STRICT;
        """
}
