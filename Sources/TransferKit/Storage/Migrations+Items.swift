import GRDB

extension Migrations {
    /// What schema 2 changes in the tables of items: folders, bytes from memory, and the base folder.
    static func migrateItems(_ db: Database) throws {
        try db.execute(sql: items2)
    }

    private static let items2 = """
        -- The manifest. A file in a folder has the folder's number, its own name as source, and an empty destination.
        ALTER TABLE file ADD COLUMN kind TEXT NOT NULL DEFAULT 'file';
        ALTER TABLE file ADD COLUMN directory INTEGER;
        ALTER TABLE file ADD COLUMN symbolic_links TEXT;    -- of a folder that could not be read
        CREATE INDEX file_blob ON file(source) WHERE kind = 'blob';
        CREATE INDEX file_failed ON file(session, position) WHERE state = 'failed';
        CREATE TABLE directory (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            parent INTEGER,                     -- NULL: source and destination are whole
            source BLOB NOT NULL,
            destination BLOB NOT NULL,
            PRIMARY KEY (session, number)
        ) STRICT, WITHOUT ROWID;
        -- Items that are not in the manifest yet: folders to be read, and what comes after them.
        CREATE TABLE item (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE,
            sequence INTEGER NOT NULL,
            kind TEXT NOT NULL,
            directory INTEGER,                  -- as in file
            source BLOB NOT NULL,
            destination BLOB NOT NULL,
            size INTEGER NOT NULL,
            symbolic_links TEXT NOT NULL,
            first_position INTEGER,             -- where the rows of this folder begin, once its reading began
            first_directory INTEGER,
            PRIMARY KEY (session, sequence)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX item_blob ON item(source) WHERE kind = 'blob';
        CREATE TABLE base_folder (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            path BLOB NOT NULL                  -- what sources without a leading slash are relative to
        ) STRICT;
        """
}
