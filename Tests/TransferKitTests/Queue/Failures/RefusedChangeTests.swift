import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RefusedChangeTests {
    private let fixture: QueueFixture
    private let names = ["1", "2", "3", "4"]

    init() throws {
        fixture = try QueueFixture()
    }

    /// Makes the database reject the changes that `change` specifies. A separate connection adds a trigger with the given name.
    private func refuse(_ change: String, _ name: String = "refusal") async throws {
        let database = try DatabaseQueue(path: fixture.folder.path.appending("store").appending("queue.sqlite").string)
        let trigger = "CREATE TRIGGER \(name) BEFORE \(change) BEGIN SELECT raise(ABORT, 'bad row'); END"
        try await database.write { try $0.execute(sql: trigger) }
        try database.close()
    }

    private func enqueueAll(_ queue: TransferQueue, limit: Int = 1) async throws -> [TransferSession] {
        try await queue.setMaxConcurrentSessions(limit)
        return try await queue.enqueue(try names.map { try fixture.upload($0) })
    }

    private func expectOnlySecondSessionQuarantined(_ queue: TransferQueue, _ sessions: [TransferSession]) async throws {
        await queue.waitUntilIdle()
        let remaining = try await queue.sessions()
        #expect(remaining.map(\.id) == [sessions[0].id, sessions[2].id, sessions[3].id])
        #expect(remaining.allSatisfy { $0.state == .completed })
        let quarantined = try await queue.quarantined()
        #expect(quarantined.count == 1)
        #expect(quarantined.first?.reason.contains("\(sessions[1].id)") == true)
        #expect(quarantined.first?.reason.contains("bad row") == true)
    }

    @Test(arguments: [
        "UPDATE ON session WHEN old.key = 2", "UPDATE ON file WHEN old.session = 2", "INSERT ON checkpoint WHEN new.session = 2",
        "UPDATE ON schedule WHEN old.session = 2",
    ])
    func rejectedReportDoesNotAffectOtherSessions(_ change: String) async throws {
        let queue = try await fixture.openWithAccounts()
        let sessions = try await enqueueAll(queue, limit: 2)
        let events = queue.events
        // The quarantine itself updates the session's row, so the trigger must permit this update.
        try await refuse(change.contains("ON session") ? change + " AND new.account <> 0" : change)
        try await queue.start()
        let reported: String? = await events.first { if case .quarantined(let text) = $0 { text } else { nil } }
        #expect(reported?.contains("bad row") == true)
        try await expectOnlySecondSessionQuarantined(queue, sessions)
        #expect(await queue.status().mode == .running)
        await queue.shutdown()
    }

    /// After it has quarantined 64 sessions, the queue reports a storage failure.
    @Test func reportsStorageFailureIfAllSessionsAreRejected() async throws {
        let queue = try await fixture.openWithAccounts()
        try await queue.enqueue(try (1...70).map { try fixture.upload("\($0)") })
        let events = queue.events
        try await refuse("UPDATE ON file WHEN old.session > 0")
        try await queue.start()
        let reported: String? = await events.first { kind in
            switch kind {
            case .storageFailed(let error): error.message
            case .queueBecameIdle: "all sessions are quarantined"
            default: nil
            }
        }
        #expect(reported?.contains("bad row") == true)
        #expect(try await queue.quarantined().count == 64)
        #expect(await queue.sessionIDs().count == 6)
        await queue.shutdown()
    }

    @Test func keepsSessionThatCannotBeQuarantined() async throws {
        var queue = try await fixture.openWithAccounts()
        let sessions = try await enqueueAll(queue)
        try await refuse("UPDATE ON session WHEN old.key = 2")
        try await refuse("DELETE ON schedule WHEN old.session = 2", "another")
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.id) == [sessions[0].id, sessions[2].id, sessions[3].id])
        #expect(try await queue.sessions().allSatisfy { $0.state == .completed })
        await queue.shutdown()
        queue = try await fixture.open()
        #expect(await queue.sessionIDs().count == 4)
        await queue.shutdown()
    }

    @Test func opensDespiteUnrepairableSession() async throws {
        var queue = try await fixture.openWithAccounts()
        let sessions = try await enqueueAll(queue)
        await queue.shutdown()
        let database = try DatabaseQueue(path: fixture.folder.path.appending("store").appending("queue.sqlite").string)
        try await database.write { db in
            try db.execute(sql: "UPDATE schedule SET state = 'asleep' WHERE session = 2")
            try db.execute(sql: "UPDATE schedule SET state = 'running' WHERE session = 3")
        }
        try database.close()
        try await refuse("DELETE ON schedule WHEN old.session = 2")
        try await refuse("UPDATE ON schedule WHEN old.session = 3", "another")
        queue = try await fixture.open()
        #expect(await queue.sessionIDs() == [sessions[0].id, sessions[2].id, sessions[3].id])
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.state) == [.completed, .completed])
        await queue.shutdown()
    }

    @Test func callFailsOnlyForUnchangeableSession() async throws {
        let queue = try await fixture.openWithAccounts()
        let sessions = try await enqueueAll(queue)
        try await refuse("UPDATE ON schedule WHEN old.session = 2")
        // The queue usually stores the changes of these concurrent calls in one transaction.
        let others = [sessions[0].id, sessions[2].id].map { id in Task { try await queue.hold(id) } }
        let error = try await #require(throws: QueueError.self) { try await queue.hold(sessions[1].id) }
        for other in others { try await other.value }
        #expect(error.code == .storageUnavailable && error.message.contains("bad row"))
        #expect(try await queue.sessions().map(\.state) == [.held, .waiting, .held, .waiting])
        #expect(try await queue.quarantined().isEmpty)
        await queue.shutdown()
    }

    @Test func groupCallChangesOtherSessions() async throws {
        let queue = try await fixture.openWithAccounts()
        let sessions = try await enqueueAll(queue)
        try await refuse("UPDATE ON schedule WHEN old.session = 2")
        #expect(try await queue.apply(.hold, to: .all).count == 3)
        #expect(try await queue.sessions().map(\.state) == [.held, .held, .held])
        #expect(try await queue.quarantined().first?.reason.contains("\(sessions[1].id)") == true)
        await queue.shutdown()
    }

    @Test func rejectsOnlyUnstorableRequest() async throws {
        let queue = try await fixture.openWithAccounts()
        try await refuse("INSERT ON session WHEN new.name = 'bad'")
        var bad = try fixture.upload("1")
        bad.name = "bad"
        let request = bad
        await #expect(throws: QueueError.self) { _ = try await queue.enqueue(request) }
        try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.state) == [.completed])
        await queue.shutdown()
    }

    @Test func reportsGapIfChangeLogIsUnwritable() async throws {
        let queue = try await fixture.openWithAccounts()
        let known = queue.revision
        try await refuse("INSERT ON event")
        let handle = try await queue.enqueue(try fixture.upload("1"))
        let events = queue.events
        try await queue.start()
        let completed: SessionID? = await events.first { if case .completed(let id) = $0 { id } else { nil } }
        #expect(completed == handle.id)
        let past: QueueEvent.Kind? = await queue.events(since: known).first { $0 }
        guard case .gap = past else {
            Issue.record("The queue reports no gap: \(past.debugDescription)")
            return
        }
        await queue.shutdown()
    }

    @Test func rejectedTotalsDoNotAffectSessions() async throws {
        let queue = try await fixture.openWithAccounts()
        for change in ["INSERT", "UPDATE"] { try await refuse("\(change) ON total", "refusal\(change)") }
        try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.state) == [.completed])
        await queue.shutdown()
    }

    @Test func doesNotReuseKeyOfExistingRow() async throws {
        var queue = try await fixture.openWithAccounts()
        _ = try await enqueueAll(queue)
        await queue.shutdown()
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        let database = try DatabaseQueue(
            path: fixture.folder.path.appending("store").appending("queue.sqlite").string, configuration: configuration)
        try await database.write { try $0.execute(sql: "DELETE FROM schedule WHERE session = 4") }
        try database.close()
        queue = try await fixture.open()
        try await queue.enqueue(try fixture.upload("5"))
        #expect(try await queue.sessions().count == 4)
        await queue.shutdown()
    }
}
