extension Migrations {
    /// What schema 3 adds: downloads, streams, files that already have a place at the server, and when it removes them.
    static let payloads = """
        ALTER TABLE session ADD COLUMN folder BLOB;         -- where a download goes
        ALTER TABLE file ADD COLUMN upload_url TEXT;        -- a capability
        ALTER TABLE file ADD COLUMN unsized INTEGER NOT NULL DEFAULT 0; -- 1: the size is not known yet, and stored as 0
        ALTER TABLE item ADD COLUMN upload_url TEXT;
        ALTER TABLE item ADD COLUMN unsized INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE checkpoint ADD COLUMN expires_at INTEGER;   -- milliseconds since 1970
        CREATE INDEX file_stream ON file(source) WHERE kind = 'stream';
        CREATE INDEX file_unsized ON file(session) WHERE unsized = 1;
        CREATE INDEX item_stream ON item(session) WHERE kind = 'stream';
        CREATE INDEX item_unsized ON item(session) WHERE unsized = 1;
        """
}
