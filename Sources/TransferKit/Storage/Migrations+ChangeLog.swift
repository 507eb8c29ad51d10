extension Migrations {
    /// The change log: the last events of the queue, each written in the transaction that made the change.
    static let changeLogSchema = """
        CREATE TABLE event (
            revision INTEGER PRIMARY KEY,
            time INTEGER NOT NULL,              -- milliseconds since 1970
            kind TEXT NOT NULL,
            sessions BLOB,                      -- 16 bytes a session; not stored for very many
            number INTEGER,                     -- an index, position, order revision or time, by kind
            detail TEXT,                        -- what else the event has, as JSON
            weight INTEGER NOT NULL             -- the bytes of this event and all before it
        ) STRICT;
        """
}
