extension Migrations {
    /// Sessions that are out of the queue, and whose rows go piece by piece.
    static let removalSchema = """
        CREATE TABLE removal (
            session INTEGER PRIMARY KEY,
            quarantine INTEGER                  -- where its rows go; NULL if they are deleted
        ) STRICT;
        ALTER TABLE quarantine ADD COLUMN session INTEGER;
        CREATE TABLE quarantined_row (
            number INTEGER PRIMARY KEY,
            quarantine INTEGER NOT NULL,
            origin TEXT NOT NULL,               -- the table that it was in
            content TEXT NOT NULL               -- the row as JSON, BLOBs in hexadecimal digits
        ) STRICT;
        CREATE INDEX quarantined_row_quarantine ON quarantined_row(quarantine, number);
        """
}
