extension Migrations {
    /// What schema 5 adds: until when a server wants to be left alone, and what is to be removed by when, where, and after whom.
    static let outbox = """
        ALTER TABLE discard ADD COLUMN left_alone_until INTEGER NOT NULL DEFAULT 0; -- the server asked for that; 0: it did not
        CREATE INDEX discard_due ON discard(next_attempt_at) WHERE held_by IS NULL;
        CREATE INDEX discard_part ON discard(next_attempt_at) WHERE held_by IS NULL
            AND CASE WHEN json_valid(endpoint) THEN json_extract(endpoint, '$.transport') END = 'transferkit-parts';
        CREATE INDEX discard_put_off ON discard(key, left_alone_until) WHERE held_by IS NULL AND next_attempt_at > 0;
        CREATE INDEX discard_left_alone ON discard(left_alone_until) WHERE left_alone_until > 0;
        CREATE INDEX discard_held ON discard(held_by) WHERE held_by IS NOT NULL;
        """
}
