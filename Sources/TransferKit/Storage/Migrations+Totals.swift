extension Migrations {
    /// What the sessions in each state come to together, kept up with every change, so that nobody has to add up a million sessions.
    static let totals = """
        CREATE TABLE total (
            state TEXT PRIMARY KEY,
            files INTEGER NOT NULL,
            files_done INTEGER NOT NULL,
            files_failed INTEGER NOT NULL,
            bytes_total INTEGER NOT NULL,
            bytes_done INTEGER NOT NULL         -- of completed files, and what checkpoints vouch for of the others
        ) STRICT, WITHOUT ROWID;
        INSERT INTO total SELECT state, sum(files), sum(files_done), sum(files_failed), sum(bytes_total), sum(bytes_done)
            FROM (\(SessionFigures.selection)) GROUP BY state;
        """
}
