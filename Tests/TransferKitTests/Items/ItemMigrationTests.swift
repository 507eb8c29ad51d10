import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct ItemMigrationTests {
    @Test func aStoreOfSchema1KeepsItsFiles() async throws {
        let fixture = try ItemFixture()
        try FileManager.default.createDirectory(atPath: fixture.storage.string, withIntermediateDirectories: true)
        let id = SessionID()
        let database = try DatabaseQueue(path: fixture.storage.appending("queue.sqlite").string)
        let (account, options) = (
            String(decoding: try JSONEncoder().encode(Account("a", endpoints: [])), as: UTF8.self),
            String(decoding: try JSONEncoder().encode(SessionOptions()), as: UTF8.self)
        )
        try await database.write { db in
            try db.execute(sql: Self.schema1)
            try db.execute(sql: "INSERT INTO account VALUES (1, 'a', ?, NULL)", arguments: [account])
            try db.execute(
                sql: """
                    INSERT INTO session(key, id, rank, account, state, name, direction, tags, options, files, files_done, files_failed,
                        bytes_total, bytes_done, created_at)
                    VALUES (1, ?, 0, 1, 'waiting', 'old', 'upload', '[]', ?, 3, 1, 1, 30, 10, 0)
                    """, arguments: [unsafe withUnsafeBytes(of: id.uuid.uuid) { unsafe Data($0) }, options])
            try db.execute(
                sql: """
                    INSERT INTO file(session, position, source, destination, state, size, generation, error) VALUES
                        (1, 0, CAST('/x/a' AS BLOB), CAST('a' AS BLOB), 'completed', 10, 1, NULL),
                        (1, 1, x'2F78FF', x'FF', 'failed', 10, 1,
                            '{"failureClass":"permanent","code":"rejected","message":"No."}'),
                        (1, 2, CAST('/x/c' AS BLOB), CAST('d/c' AS BLOB), 'pending', 10, 2, NULL);
                    INSERT INTO checkpoint VALUES (1, 2, 'memory://a/', 2, x'01', 4,
                        '{"size":10,"modificationTime":0,"inode":1,"device":1,"bootID":""}');
                    """)
        }
        try database.close()
        let store = try await fixture.open()
        let items = try await fixture.items(store)
        #expect(items.map(\.state) == [.completed, .failed, .pending])
        #expect(items.map(\.source.description) == ["/x/a", FilePath(bytes: [0x2F, 0x78, 0xFF]).description, "/x/c"])
        #expect(items.map(\.destination.bytes) == [Array("a".utf8), [0xFF], Array("d/c".utf8)])
        #expect(items.map(\.bytesDone) == [10, 0, 4] && items.allSatisfy { !$0.isFolder })
        let record = try #require(try await store.sessions([1]).first)
        #expect(record.status.id == id && record.status.failedItem == items[1].source)
        #expect(try await store.checkpoint(session: 1, position: 2, endpoint: "memory://a/", generation: 2)?.checkpoint.confirmed == 4)
        #expect(try await store.pool.read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 5)
        let tree = try FolderTree(fixture.folder.path.appending("tree"))
        try tree.file("new")
        try await store.commit([.addItems(1, try await store.drafts(of: [TransferItem(tree.root)]))])
        try await fixture.expand(store)
        #expect(try await fixture.items(store).map(\.position) == [0, 1, 2, 3])
        await store.close()
    }

    /// As the first version wrote it.
    private static let schema1 = """
        CREATE TABLE account (
            key INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            definition TEXT NOT NULL,           -- Account as JSON
            block TEXT                          -- AccountBlock as JSON
        ) STRICT;
        CREATE TABLE session (
            key INTEGER PRIMARY KEY,
            id BLOB NOT NULL UNIQUE,            -- the UUID's 16 bytes
            rank INTEGER NOT NULL,
            account INTEGER NOT NULL REFERENCES account(key),
            state TEXT NOT NULL,
            interrupted INTEGER NOT NULL DEFAULT 0,
            name TEXT NOT NULL,
            direction TEXT NOT NULL,
            tags TEXT NOT NULL,                 -- JSON array
            context BLOB,
            options TEXT NOT NULL,              -- SessionOptions as JSON
            endpoint TEXT,
            transport TEXT,
            files INTEGER NOT NULL,
            files_done INTEGER NOT NULL DEFAULT 0,
            files_failed INTEGER NOT NULL DEFAULT 0,
            bytes_total INTEGER NOT NULL,
            bytes_done INTEGER NOT NULL DEFAULT 0,  -- of completed files
            attempts INTEGER NOT NULL DEFAULT 0,
            error TEXT,                         -- TransferError as JSON
            created_at INTEGER NOT NULL,        -- milliseconds since 1970, as all times
            started_at INTEGER,
            ended_at INTEGER
        ) STRICT;
        CREATE INDEX session_rank ON session(rank);
        CREATE INDEX session_account ON session(account);
        CREATE TABLE file (
            session INTEGER NOT NULL REFERENCES session(key) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            source BLOB NOT NULL,               -- names are bytes
            destination BLOB NOT NULL,
            state TEXT NOT NULL,
            size INTEGER NOT NULL,
            generation INTEGER NOT NULL DEFAULT 1,
            receipt TEXT,                       -- TransferReceipt as JSON
            error TEXT,                         -- TransferError as JSON
            PRIMARY KEY (session, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE checkpoint (
            session INTEGER NOT NULL,
            position INTEGER NOT NULL,
            endpoint TEXT NOT NULL,
            generation INTEGER NOT NULL,
            data BLOB NOT NULL,                 -- the transport's own
            confirmed INTEGER NOT NULL,
            identity TEXT NOT NULL,             -- SourceIdentity as JSON
            PRIMARY KEY (session, position, endpoint),
            FOREIGN KEY (session, position) REFERENCES file(session, position) ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
        INSERT INTO grdb_migrations VALUES ('1');
        PRAGMA application_id = 1414228340;
        PRAGMA user_version = 1;
        """
}
