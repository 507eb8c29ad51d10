import Foundation
import GRDB
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct QuarantineTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private var database: String { fixture.folder.path.appending("store").appending("queue.sqlite").string }

    private func change(_ sql: String) throws {
        var configuration = Configuration()
        // Waits while the queue writes.
        configuration.busyMode = .timeout(60)
        let queue = try DatabaseQueue(path: database, configuration: configuration)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    private func count(_ table: String) throws -> Int {
        try StoreInspection(fixture.folder.path.appending("store")).count(table) ?? -1
    }

    /// Opens a queue with one quarantined session, whose row contains an invalid direction, and one intact session.
    private func openWithQuarantinedSession() async throws -> (TransferQueue, SessionID) {
        let queue = try await fixture.openWithAccounts()
        var request = try fixture.upload("one", "two")
        request.tags = ["first"]
        let session = try await queue.enqueue(request)
        try await queue.enqueue(try fixture.upload("three"))
        await queue.shutdown()
        try change("UPDATE session SET direction = 'sideways' WHERE key = 1")
        let opened = try await fixture.open()
        let events = opened.events
        #expect(try await opened.sessions().count == 1)
        let reason = await events.first { if case .quarantined(let reason) = $0 { reason } else { nil } }
        #expect(reason?.isEmpty == false)
        await opened.deferredDeletion.waitUntilDone()
        return (opened, session.id)
    }

    @Test func reportsQuarantinedSession() async throws {
        let (queue, id) = try await openWithQuarantinedSession()
        #expect(try await queue.quarantinedCount() == 1)
        let health = try await queue.storeHealth()
        #expect(health.quarantined == 1 && health.problems.isEmpty)
        let row = try #require(try await queue.quarantined().first)
        #expect(row.session == id && row.name == "one and 1 more")
        await queue.shutdown()
    }

    /// The queue finds one unreadable session when it opens the database, and the other one when it lists the sessions.
    @Test func logsQuarantinedSessions() async throws {
        var queue = try await fixture.openWithAccounts()
        let first = try await queue.enqueue(try fixture.upload("one"))
        try await queue.enqueue(try fixture.upload("two"))
        await queue.shutdown()
        try change("UPDATE session SET direction = 'sideways' WHERE key = 1")
        try change("UPDATE schedule SET state = 'asleep' WHERE session = 2")
        let log = CountingLog(warnings: Locked(0))
        queue = try await fixture.open(logger: Logger(label: "test") { _ in log })
        #expect(try await queue.sessions().isEmpty)
        await queue.deferredDeletion.waitUntilDone()
        await queue.shutdown()
        let lines = log.errors.withLock { $0.filter { $0.hasPrefix("Quarantined ") } }
        #expect(lines.count == 2, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("Quarantined the session \(first.id).") }, "\(lines)")
        // This session has no valid state, so the message identifies the session by its row number.
        #expect(lines.contains { $0.contains("The session in row 2 ") }, "\(lines)")
    }

    @Test func restoresCompleteSession() async throws {
        var (queue, id) = try await openWithQuarantinedSession()
        let row = try #require(try await queue.quarantined().first)
        try await queue.restoreQuarantined(row.number)
        #expect(try await queue.quarantinedCount() == 0)
        #expect(await queue.sessionIDs().count == 1, "the session reappears only when the queue is next opened")
        await queue.shutdown()
        try change("UPDATE session SET direction = 'upload' WHERE key = 1")
        queue = try await fixture.open()
        let status = try await queue.status(of: id)
        #expect(status.index == 0 && status.tags == ["first"] && status.statistics.files == 2)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.status(of: id).state == .completed)
        #expect(fixture.memory.completePaths.count == 3)
        await queue.shutdown()
        try StoreInspection(fixture.folder.path.appending("store")).expectNoContradictions("restored")
    }

    /// A URL or a setting can grant access.
    @Test func hidesSecretOptions() async throws {
        let store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        var draft = SessionDraft.draft()
        draft.options = SessionOptions(
            metadata: ["note": "shown"], settings: ["token": "secret"], creationURL: "https://example.com/secret")
        try await store.commit([.saveAccount(1, .memory("a")), .session(1, rank: 0, draft)])
        try await store.commit([.quarantine(1, "for a test")])
        while try await store.sweep() {}
        let row = try #require(try await store.quarantined().first)
        #expect(row.session == draft.id && row.name == "test")
        #expect(row.content.contains("shown") && !row.content.contains("secret"))
        try await store.restoreQuarantined(row.number)
        #expect(try await store.sessions([1]).first?.options == draft.options)
        await store.close()
    }

    @Test func quarantinesUnreadableSessionAgain() async throws {
        var (queue, _) = try await openWithQuarantinedSession()
        try await queue.restoreQuarantined(1)
        await queue.shutdown()
        queue = try await fixture.open()
        #expect(try await queue.sessions().count == 1)
        #expect(try await queue.quarantinedCount() == 1)
        await queue.shutdown()
    }

    @Test func deletesDroppedSession() async throws {
        let (queue, _) = try await openWithQuarantinedSession()
        let row = try #require(try await queue.quarantined().first)
        try await queue.dropQuarantined(row.number)
        await queue.deferredDeletion.waitUntilDone()
        #expect(try await queue.quarantinedCount() == 0)
        #expect(try count("quarantined_row") == 0 && count("removal") == 0 && count("session") == 1)
        await #expect(throws: QueueError.self) { try await queue.dropQuarantined(row.number) }
        await #expect(throws: QueueError.self) { try await queue.restoreQuarantined(row.number) }
        await queue.shutdown()
    }

    /// A process ended before the last step of restoring a session. Afterwards, the user drops the session, or the queue deletes the session because
    /// the quarantine is full (`isTrimmed`).
    @Test(arguments: [false, true]) func deletesPartiallyRestoredSession(isTrimmed: Bool) async throws {
        let (queue, _) = try await openWithQuarantinedSession()
        try change("CREATE TRIGGER refusal BEFORE INSERT ON schedule BEGIN SELECT raise(ABORT, 'killed'); END")
        await #expect(throws: QueueError.self) { try await queue.restoreQuarantined(1) }
        try change("DROP TRIGGER refusal")
        #expect(try count("quarantine") == 1 && count("session") == 2 && count("file") == 3)
        if isTrimmed {
            // The quarantine holds at most one session, so the older session is deleted.
            try change("INSERT INTO quarantine(found_at, reason, content) VALUES (0, 'for a test', '{}')")
            var limits = StoreLimits()
            limits.quarantined = 1
            while try await queue.store.trim(limits) {}
            while try await queue.store.sweep() {}
        } else {
            try await queue.dropQuarantined(1)
            await queue.deferredDeletion.waitUntilDone()
        }
        #expect(try count("session") == 1 && count("file") == 1 && count("session_tag") == 0 && count("removal") == 0)
        await queue.shutdown()
    }

    /// A process ended before the last step of dropping a session. Some rows may already be deleted, so the session can't be restored.
    @Test func rejectsRestoringAfterInterruptedDropping() async throws {
        let (queue, _) = try await openWithQuarantinedSession()
        try change("CREATE TRIGGER refusal BEFORE INSERT ON schedule BEGIN SELECT raise(ABORT, 'killed'); END")
        await #expect(throws: QueueError.self) { try await queue.restoreQuarantined(1) }
        try change("DROP TRIGGER refusal")
        try change("CREATE TRIGGER refusal BEFORE DELETE ON quarantine BEGIN SELECT raise(ABORT, 'killed'); END")
        await #expect(throws: QueueError.self) { try await queue.dropQuarantined(1) }
        try change("DROP TRIGGER refusal")
        let error = await #expect(throws: QueueError.self) { try await queue.restoreQuarantined(1) }
        #expect(error?.code == .noSuchSession)
        try await queue.dropQuarantined(1)
        await queue.deferredDeletion.waitUntilDone()
        #expect(try count("quarantine") == 0 && count("session") == 1 && count("schedule") == 1 && count("file") == 1)
        await queue.shutdown()
    }

    @Test func keepsUploadURLsSecret() async throws {
        var (queue, _) = try await openWithQuarantinedSession()
        let secret = "https://one.example/files/secret"
        await queue.shutdown()
        try change("UPDATE session SET direction = 'sideways'")
        try change("UPDATE file SET upload_url = '\(secret)', creation_url = '\(secret)'")
        queue = try await fixture.open()
        let events = queue.events
        #expect(try await queue.sessions().isEmpty)
        _ = await events.first { if case .quarantined = $0 { true } else { false } }
        await queue.deferredDeletion.waitUntilDone()
        let quarantinedRows = try await queue.quarantinedRows(of: 2, after: 0, limit: 10)
        #expect(!quarantinedRows.isEmpty && !quarantinedRows.contains { $0.content.contains(secret) })
        try await queue.restoreQuarantined(2)
        await queue.shutdown()
        #expect(try count("file WHERE upload_url = '\(secret)' AND creation_url = upload_url") == 1)
    }

    @Test func doesNotRestoreSessionWithoutAccount() async throws {
        let (queue, _) = try await openWithQuarantinedSession()
        try await queue.apply(.remove(), to: .all)
        try await queue.deleteAccount("a")
        let error = try await #require(throws: QueueError.self) { try await queue.restoreQuarantined(1) }
        #expect(error.code == .noSuchAccount)
        #expect(try await queue.quarantinedCount() == 1)
        await queue.shutdown()
    }

    /// The session has files, a folder and a checkpoint, and more rows than one transaction changes.
    @Test func restoresAndDropsLargeSession() async throws {
        let count = 2 * QueueStore.maximumRowsPerSweep + 1
        var store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        var draft = SessionDraft.draft()
        draft.items = (0..<count).map { ItemDraft(source: Data([47, 0xFF, UInt8($0 % 200)]), destination: Data("\($0)".utf8), size: 1) }
        draft.items.append(ItemDraft(kind: .folder, source: Data("/d".utf8), destination: Data("d".utf8), size: 0))
        try await store.commit([
            .saveAccount(1, .memory("a")), .session(1, rank: 0, draft),
            .file(
                1, position: 3,
                .checkpoint(
                    Checkpoint(data: Data([0, 255]), confirmed: 1), endpoint: Account.memory("a").endpoints[0], generation: 1, nil)),
        ])
        let items = try await store.items(of: 1, from: 0, limit: count + 1)
        for _ in 0..<2 {
            try await store.commit([.quarantine(1, "for a test")])
            while try await store.sweep() {}
            let number = try #require(try await store.quarantined().first?.number)
            try await store.restoreQuarantined(number)
            await store.close()
            store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
            #expect(try await store.load(.memory).0.sessions.map(\.key) == [1])
            #expect(try await store.items(of: 1, from: 0, limit: count + 1) == items)
            #expect(try await store.totals(leavingOut: []).states[.waiting]?.files == Int64(count + 1))
            #expect(
                try await store.checkpoint(session: 1, position: 3, endpoint: "memory://a/", generation: 1)?.checkpoint.data
                    == Data([0, 255]))
        }
        try await store.commit([.quarantine(1, "for a test")])
        let number = try #require(try await store.quarantined().first?.number)
        try await store.dropQuarantined(number)
        while try await store.sweep() {}
        await store.close()
        for table in ["file", "item", "session", "schedule", "removal", "quarantine", "quarantined_row"] {
            #expect(try self.count(table) == 0, "\(table)")
        }
    }
}
