import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct MigrationTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private var database: FilePath { folder.path.appending("queue.sqlite") }

    private func open() async throws -> QueueStore {
        try await QueueStore.open(.folder(folder.path), clock: .system)
    }

    /// Versions before the first release reached version 5 of the schema through five migrations. The first four migrations no longer exist.
    @Test func opensMigratedDatabase() async throws {
        let store = try await open()
        try await store.commit([.saveAccount(1, Account("a", endpoints: []))])
        await store.close()
        try await DatabaseQueue(path: database.string).write {
            try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('1'), ('2'), ('3'), ('4')")
        }
        let reopened = try await open()
        #expect(try await reopened.pool.read { try String.fetchAll($0, sql: "SELECT name FROM account") } == ["a"])
        await reopened.close()
    }

    @Test func migratesDatabaseOfVersion5() async throws {
        let store = try await open()
        try await store.commit([
            .saveAccount(1, .memory("a")), .session(1, rank: 0, .draft()), .session(2, rank: 1, .draft()),
            .beginSession(2, .now),
        ])
        let version = try await store.pool.read { try Int32.fetchOne($0, sql: "PRAGMA user_version") }
        await store.close()
        try await DatabaseQueue(path: database.string).write {
            try $0.execute(
                sql: """
                    ALTER TABLE schedule DROP COLUMN deadline;
                    ALTER TABLE schedule DROP COLUMN deadline_from;
                    ALTER TABLE file DROP COLUMN creation_url;
                    ALTER TABLE item DROP COLUMN creation_url;
                    ALTER TABLE schedule DROP COLUMN has_transferred;
                    DROP INDEX file_form;
                    DROP INDEX item_form;
                    ALTER TABLE file DROP COLUMN form;
                    ALTER TABLE item DROP COLUMN form;
                    ALTER TABLE removal DROP COLUMN account;
                    ALTER TABLE removal DROP COLUMN is_held;
                    DELETE FROM grdb_migrations WHERE identifier IN ('6', '7', '8', '9', '10', '11', '12', '13');
                    ALTER TABLE session DROP COLUMN times;
                    ALTER TABLE item DROP COLUMN place;
                    ALTER TABLE file DROP COLUMN place;
                    PRAGMA user_version = 5;
                    """)
        }
        let reopened = try await open()
        #expect(try await reopened.pool.read { try Int32.fetchOne($0, sql: "PRAGMA user_version") } == version)
        try await reopened.commit([.beginSession(1, .now)])
        let (scheduler, _, _) = try await reopened.load(.memory)
        #expect([1, 2].map { scheduler.sessionIndex[$0]?.conditions.contains(.hasTransferred) } == [false, true])
        await reopened.close()
    }

    @Test func migratesDeadlines() async throws {
        let store = try await open()
        var draft = SessionDraft.draft()
        draft.options.deadline = .milliseconds(90_500)
        try await store.commit([
            .saveAccount(1, .memory("a")), .session(1, rank: 0, .draft()), .session(2, rank: 1, draft),
        ])
        await store.close()
        try await DatabaseQueue(path: database.string).write {
            try $0.execute(
                sql: """
                    ALTER TABLE schedule DROP COLUMN deadline;
                    ALTER TABLE schedule DROP COLUMN deadline_from;
                    ALTER TABLE session ADD COLUMN deadline_from INTEGER;
                    UPDATE session SET deadline_from = key * 1000000000000;
                    DELETE FROM grdb_migrations WHERE identifier IN ('11', '12', '13');
                    ALTER TABLE session DROP COLUMN times;
                    ALTER TABLE item DROP COLUMN place;
                    ALTER TABLE file DROP COLUMN place;
                    PRAGMA user_version = 10;
                    """)
        }
        let reopened = try await open()
        let (scheduler, _, _) = try await reopened.load(.memory)
        let details = [1, 2].map { scheduler.sessionIndex.details($0) }
        #expect(details.map(\.deadline) == [nil, .milliseconds(90_500)])
        #expect(details.map { $0.deadlineFrom?.timeIntervalSince1970 } == [1e9, 2e9])
        await reopened.close()
    }
}
