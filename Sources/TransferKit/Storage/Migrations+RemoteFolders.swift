extension Migrations {
    /// What schema 4 adds: how far a remote folder was listed, and whether a name in it is known.
    static let remoteFolders = """
        ALTER TABLE item ADD COLUMN next_directory INTEGER; -- of a remote folder: the folders before this one were listed; NULL: none was
        CREATE INDEX file_listed ON file(session, directory, source) WHERE kind = 'download' AND directory IS NOT NULL;
        CREATE INDEX directory_parent ON directory(session, parent, source);
        """
}
