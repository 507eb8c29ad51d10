import Foundation
import GRDB
import SystemPackage

/// A store as the third version left it: that of the second, and what the third added.
enum Schema3Store {
    static func make(in folder: FilePath) throws {
        try Schema2Store.make(in: folder)
        let pool = try DatabasePool(path: folder.appending("queue.sqlite").string)
        try pool.write { db in
            try db.execute(sql: additions)
            try db.execute(sql: "INSERT INTO grdb_migrations VALUES ('3'); PRAGMA user_version = 3")
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
}
