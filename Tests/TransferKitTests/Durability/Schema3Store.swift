import Foundation
import GRDB
import SystemPackage

/// A store as the third version left it: that of the second, what the third added, and sessions that have all of that.
enum Schema3Store {
    /// - Parameter withOrphan: Whether it also has a file of a session that does not exist.
    static func make(in folder: FilePath, withOrphan: Bool = false) throws {
        try Schema2Store.make(in: folder)
        var configuration = Configuration()
        configuration.foreignKeysEnabled = !withOrphan
        let pool = try DatabasePool(path: folder.appending("queue.sqlite").string, configuration: configuration)
        try pool.write { db in
            try db.execute(sql: additions)
            try db.execute(sql: sessions)
            try db.execute(sql: "INSERT INTO grdb_migrations VALUES ('3'); PRAGMA user_version = 3")
            guard withOrphan else { return }
            try db.execute(
                sql: "INSERT INTO file(session, position, source, destination, state, size) VALUES (99, 0, x'61', x'61', 'pending', 1)")
        }
        try pool.close()
    }

    private static let additions = """
        ALTER TABLE session ADD COLUMN folder BLOB;
        ALTER TABLE file ADD COLUMN upload_url TEXT;
        ALTER TABLE file ADD COLUMN unsized INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE item ADD COLUMN upload_url TEXT;
        ALTER TABLE item ADD COLUMN unsized INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE checkpoint ADD COLUMN expires_at INTEGER;
        CREATE INDEX file_stream ON file(source) WHERE kind = 'stream';
        CREATE INDEX file_unsized ON file(session) WHERE unsized = 1;
        CREATE INDEX item_stream ON item(session) WHERE kind = 'stream';
        CREATE INDEX item_unsized ON item(session) WHERE unsized = 1;
        """

    /// An upload with a folder that was read, a file that has a place, and a folder that waits; and a download that was begun.
    private static let sessions = """
        INSERT INTO session(key, account, name, direction, files, bytes_total, created_at, folder)
            VALUES (5, 7, 'upload', 'upload', 3, 200, 1000, NULL), (6, 7, 'download', 'download', 1, 0, 1000, CAST('/no/such/target' AS BLOB));
        INSERT INTO schedule(session, id, rank, account, state, lane, mark, keeps_partial)
            VALUES (5, x'09090909090909090909090909090904', 1000, 7, 'waiting', 4, 0, 0),
                (6, x'09090909090909090909090909090905', 2000, 7, 'waiting', 4, 0, 0);
        INSERT INTO directory(session, number, parent, source, destination)
            VALUES (5, 0, NULL, CAST('/no/such/folder' AS BLOB), CAST('folder' AS BLOB)), (5, 1, 0, CAST('in' AS BLOB), x'');
        INSERT INTO file(session, position, kind, directory, source, destination, state, size, upload_url, unsized)
            VALUES (5, 0, 'file', 1, CAST('name' AS BLOB), x'', 'pending', 100, NULL, 0),
                (5, 1, 'file', NULL, CAST('/no/such/placed' AS BLOB), CAST('placed' AS BLOB), 'pending', 100, 'https://example.org/place', 0),
                (6, 0, 'download', NULL, CAST('sub/name' AS BLOB), CAST('remote' AS BLOB), 'pending', 0, NULL, 1);
        INSERT INTO item(session, sequence, kind, source, destination, size, symbolic_links)
            VALUES (5, 0, 'folder', CAST('/no/such/waiting' AS BLOB), CAST('waiting' AS BLOB), 0, 'skip');
        INSERT INTO checkpoint(session, position, endpoint, generation, data, confirmed, identity, expires_at)
            VALUES (6, 0, 'memory://a/', 1, x'01', 30, 'null', 9000000);
        UPDATE total SET files = files + 4, bytes_total = bytes_total + 200, bytes_done = bytes_done + 30 WHERE state = 'waiting';
        """
}
