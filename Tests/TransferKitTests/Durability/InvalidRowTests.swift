import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// Rows with values that no version of the queue writes.
@Suite struct InvalidRowTests {
    private static let names = ["w1", "w2", "w3", "w4", "w5"]

    @Test(arguments: [
        "UPDATE schedule SET state = 'asleep' WHERE session = 2",
        "UPDATE schedule SET id = x'0102030405060708090a0b0c0d0e0f' WHERE session = 2",
        "UPDATE schedule SET id = x'' WHERE session = 2",
        "UPDATE schedule SET id = (SELECT id FROM schedule WHERE session = 1) WHERE session = 2",
        "UPDATE schedule SET lane = 300 WHERE session = 2",
        "UPDATE schedule SET lane = -1 WHERE session = 2",
        "UPDATE schedule SET account = 99 WHERE session = 2",
        "UPDATE schedule SET account = 5000000000 WHERE session = 2",
        "UPDATE session SET options = '{' WHERE key = 2",
        "UPDATE session SET options = '{\"stallTimeout\":\"long\"}' WHERE key = 2",
        "UPDATE session SET error = 'broken' WHERE key = 2",
        "UPDATE session SET direction = 'sideways' WHERE key = 2",
        "UPDATE session SET bytes_total = 9223372036854775807 WHERE key = 2",
        "UPDATE session SET bytes_done = -1 WHERE key = 2",
        "DELETE FROM session WHERE key = 2",
    ])
    func quarantinesUnreadableSession(_ sql: String) async throws {
        for listsFirst in [false, true] {
            let folder = try await preparedDatabase(sql)
            let stage = try await Stage(folder.path, usesTestClock: false)
            if listsFirst { _ = try await stage.queue.sessions() }
            try await stage.queue.start()
            await stage.queue.waitUntilIdle()
            let sessions = try await stage.queue.sessions()
            #expect(sessions.map(\.name) == ["w1", "w3", "w4", "w5"])
            #expect(sessions.allSatisfy { $0.state == .completed })
            #expect(await stage.queue.sessionIDs().count == 4)
            let inspection = try StoreInspection(folder.path.appending("store"))
            #expect(try inspection.count("quarantine") == 1)
            await stage.queue.shutdown()
            let reopened = try await Stage(folder.path, usesTestClock: false)
            #expect(await reopened.queue.sessionIDs().count == 4)
            #expect(try await reopened.queue.storeHealth().problems.isEmpty)
            await reopened.queue.shutdown()
        }
    }

    @Test(arguments: [
        "UPDATE schedule SET rank = 5",
        "UPDATE schedule SET rank = 9223372036854775807",
        "UPDATE schedule SET rank = -9223372036854775808 WHERE session = 2",
        "UPDATE schedule SET mark = 9223372036854775807, lane = 1 WHERE session = 2",
        "UPDATE schedule SET displaced_by = 77 WHERE session = 2",
        "UPDATE schedule SET displaced_by = 2 WHERE session = 2",
        "UPDATE schedule SET displaced_by = CASE session WHEN 2 THEN 3 ELSE 2 END WHERE session IN (2, 3)",
        "UPDATE schedule SET not_before = -9223372036854775808 WHERE session = 2",
        "UPDATE schedule SET deduplication_key = 'the same'",
        "UPDATE schedule SET completed_at = 9223372036854775807 WHERE session = 2",
        "UPDATE session SET created_at = 9223372036854775807 WHERE key = 2",
        "UPDATE file SET state = 'lost' WHERE session = 2",
        "UPDATE file SET size = -9223372036854775808 WHERE session = 2",
        "UPDATE file SET generation = 9223372036854775807 WHERE session = 2",
        "UPDATE file SET receipt = '{'",
        "INSERT OR REPLACE INTO setting(name, value) VALUES ('sessionLimit', -3)",
        "INSERT OR REPLACE INTO setting(name, value) VALUES ('rateLimit', 0)",
        "UPDATE setting SET value = 9223372036854775807 WHERE name = 'orderRevision'",
        "INSERT INTO discard(endpoint, data, confirmed, next_attempt_at, give_up_at) VALUES ('{', x'00', 0, 0, 0)",
        "UPDATE session SET attempts = 9223372036854775807 WHERE key = 2",
        "UPDATE session SET attempts = -9223372036854775808 WHERE key = 2",
        "UPDATE session SET files = 9223372036854775807, files_done = -9223372036854775808, files_failed = 9223372036854775807 WHERE key = 2",
        "UPDATE session SET milliseconds = 9223372036854775807 WHERE key = 2",
        "UPDATE session SET created_at = -9223372036854775808, started_at = 9223372036854775807 WHERE key = 2",
        "UPDATE session SET bytes_total = 17 << 56 WHERE key = 2",
        "UPDATE total SET bytes_total = 9223372036854775807, bytes_done = -9223372036854775808, files = 9223372036854775807",
        "UPDATE event SET weight = 9223372036854775807",
        "UPDATE event SET weight = -9223372036854775808, number = 9223372036854775807",
        "UPDATE setting SET value = 9223372036854775807",
        "INSERT OR REPLACE INTO setting(name, value) VALUES ('milliseconds', 9223372036854775807), ('bytesConfirmed', 9223372036854775807)",
        "UPDATE file SET size = 9223372036854775807 WHERE session = 2",
    ])
    func repairsInvalidValues(_ sql: String) async throws {
        let folder = try await preparedDatabase(sql)
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.move(Stage.id("w5"), to: .front)
        try await stage.queue.move(Stage.id("w4"), to: .end)
        try await stage.queue.runNext(Stage.id("w3"))
        try await stage.queue.start()
        await stage.queue.waitUntilIdle()
        let sessions = try await stage.queue.sessions()
        #expect(Set(sessions.map(\.name)) == Set(Self.names))
        #expect(sessions.first?.name == "w5" && sessions.last?.name == "w4")
        #expect(sessions.allSatisfy { $0.state == .completed })
        #expect(try stage.server.uploads(".done").count == Self.names.count)
        let inspection = try StoreInspection(folder.path.appending("store"))
        #expect(try inspection.count("quarantine") == 0)
        #expect(try inspection.count("discard") == 0)
        await stage.queue.shutdown()
    }

    @Test func movesSessionBetweenExtremeRanks() async throws {
        let folder = try await preparedDatabase(
            "UPDATE schedule SET rank = CASE session WHEN 1 THEN -9223372036854775808 ELSE 9223372036854775802 + session END")
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.move(Stage.id("w5"), to: .after(Stage.id("w1")))
        #expect(try await stage.queue.sessions().map(\.name) == ["w1", "w5", "w2", "w3", "w4"])
        await stage.queue.shutdown()
        let reopened = try await Stage(folder.path, usesTestClock: false)
        #expect(try await reopened.queue.sessions().map(\.name) == ["w1", "w5", "w2", "w3", "w4"])
        await reopened.queue.shutdown()
    }

    /// The outcome of the lost session is unknown, so the queue holds the dependent "w2".
    @Test(arguments: [
        "UPDATE schedule SET after_id = x'00112233445566778899aabbccddeeff' WHERE session = 2",
        "UPDATE schedule SET after_id = x'00' WHERE session = 2",
        "UPDATE schedule SET after_id = (SELECT id FROM schedule WHERE session = 1), after_any = 1 WHERE session = 2; "
            + "UPDATE schedule SET lane = 300 WHERE session = 1",
        "UPDATE schedule SET after_id = (SELECT id FROM schedule WHERE session = 1) WHERE session = 2; "
            + "UPDATE session SET options = '{' WHERE key = 1",
    ])
    func holdsDependentOfLostSession(_ sql: String) async throws {
        let folder = try await preparedDatabase(sql)
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.start()
        await stage.queue.waitUntilIdle()
        #expect(try await stage.queue.status(of: Stage.id("w2")).state == .held)
        #expect(try await stage.queue.sessions().count { $0.state == .completed } >= 3)
        try await stage.queue.release(Stage.id("w2"))
        await stage.queue.waitUntilIdle()
        #expect(try await stage.queue.status(of: Stage.id("w2")).state == .completed)
        await stage.queue.shutdown()
    }

    /// The queue clamps numbers that are out of range, and ignores checkpoints with other invalid values.
    @Test(arguments: [
        "identity = '{'", "identity = 5", "data = 5", "endpoint = x'ff'", "confirmed = 'many'", "generation = 'first'",
        "confirmed = 9223372036854775807", "confirmed = -9223372036854775808", "expires_at = 9223372036854775807",
    ])
    func completesSessionWithInvalidCheckpoint(_ assignment: String) async throws {
        // Replaces the table with one without column types, because values on a damaged page may have any type.
        let loosened = """
            ALTER TABLE checkpoint RENAME TO typed;
            CREATE TABLE checkpoint(
                session, position, endpoint, generation, data, confirmed, identity, expires_at,
                PRIMARY KEY (session, position, endpoint)) WITHOUT ROWID;
            INSERT INTO checkpoint SELECT session, position, endpoint, generation, data, confirmed, identity, expires_at FROM typed;
            DROP TABLE typed;
            """
        let folder = try await preparedDatabase("\(loosened) UPDATE checkpoint SET \(assignment)", "w1")
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.start()
        await stage.queue.waitUntilIdle()
        let sessions = try await stage.queue.sessions()
        #expect(sessions.map(\.name) == Self.names)
        #expect(sessions.allSatisfy { $0.state == .completed })
        #expect(try StoreInspection(folder.path.appending("store")).count("quarantine") == 0)
        await stage.queue.shutdown()
    }

    @Test func treatsImpossibleTimeAsFuture() async throws {
        let folder = try await preparedDatabase("UPDATE schedule SET not_before = 9223372036854775807 WHERE session = 2")
        let stage = try await Stage(folder.path)
        try await stage.queue.start()
        await stage.queue.waitUntilIdle(scheduled: false)
        #expect(try await stage.queue.sessions().filter { $0.state == .completed }.count == 4)
        guard case .notBefore = try await stage.queue.status(of: Stage.id("w2")).why else {
            Issue.record("The session waits for another reason.")
            return
        }
        await stage.queue.shutdown()
    }

    @Test(arguments: ["UPDATE account SET definition = '{'", "UPDATE account SET block = '{'"])
    func keepsSessionsOfUnreadableAccount(_ sql: String) async throws {
        let folder = try await preparedDatabase("\(sql); UPDATE schedule SET state = 'cancelled' WHERE session = 1", "w1")
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.start()
        await stage.queue.waitUntilIdle()
        #expect(await stage.queue.account("a")?.blockingError != nil)
        try await stage.queue.remove(Stage.id("w1"))
        try await stage.queue.save(stage.account("a"))
        await stage.queue.waitUntilIdle()
        #expect(try await stage.queue.sessions().filter { $0.state == .completed }.count == 4)
        await stage.queue.shutdown()
    }

    /// Creates a database with five sessions of one file each, and executes `sql` in this database.
    ///
    /// - Parameter partlyUploaded: The name of a session that has a partial upload on the server, or nil.
    private func preparedDatabase(_ sql: String, _ partlyUploaded: String? = nil) async throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let stage = try await Stage(folder.path, usesTestClock: false)
        try await stage.queue.save(stage.account("a"))
        try await stage.queue.setMaxConcurrentSessions(2)
        _ = try await stage.queue.enqueue(Self.names.map { try stage.upload($0) })
        if let partlyUploaded {
            for name in Self.names { stage.server.close(name) }
            try await stage.queue.start()
            try await stage.server.reached(partlyUploaded)
        }
        await stage.queue.shutdown()
        var configuration = Configuration()
        // A damaged database can violate its own constraints.
        configuration.foreignKeysEnabled = false
        let database = try DatabaseQueue(
            path: folder.path.appending("store").appending("queue.sqlite").string, configuration: configuration)
        try await database.write { try $0.execute(sql: sql) }
        try database.close()
        return folder
    }
}
