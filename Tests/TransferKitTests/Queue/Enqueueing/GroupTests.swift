import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Most of the groups are too large for one transaction.
@Suite struct GroupTests {
    private let count = 10_003

    @Test func appliesOperationsToWholeGroup() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let request = try fixture.upload("1")
        let ids = try await queue.enqueue(
            (0..<count).map { _ in
                var copy = request
                copy.id = SessionID()
                return copy
            }
        ).map(\.id)
        try await expectNoChangeIfOneIsInvalid(queue, ids)
        try await expectMoveOfWholeGroup(queue, ids)
        let gate = fixture.memory.gate("1", atByte: 1_000)
        try await expectRunInOrder(queue, ids) { try await gate.reached() }
        try await expectRemovalWithDependents(queue, ids, fixture)
        await queue.shutdown()
    }

    @Test func queriesAndRemovesByState() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        fixture.memory.failNext(with: TransferError(.permanent, .rejected, "No."), for: "2")
        let events = queue.events
        let ids = try await queue.enqueue(try ["1", "2", "3", "4"].map { try fixture.upload($0) }).map(\.id)
        try await queue.hold(ids[2])
        try await queue.cancel(ids[3])
        try await queue.start()
        await queue.waitUntilIdle()
        for (group, expected) in [(SessionGroup.completed, ids[0]), (.failed, ids[1]), (.state(.held), ids[2]), (.cancelled, ids[3])] {
            #expect(try await queue.sessions(in: group).map(\.id) == [expected], "\(group)")
        }
        let failed = try await queue.status(of: ids[1])
        #expect(failed.state == .failed && failed.error?.message == "No.")
        for await event in events {
            guard case .failed(let id, let error) = event.kind else { continue }
            #expect(id == ids[1] && error.message == "No.")
            break
        }
        #expect(try await queue.apply(.remove(), to: .completed) == [ids[0]])
        #expect(try await queue.apply(.remove(), to: .all) == Array(ids[1...]))
        #expect(await queue.sessionIDs().isEmpty)
        await queue.shutdown()
    }

    enum Removal: CaseIterable {
        case one, atIndex, group, withdrawal
    }

    /// A transaction changes at most 10,000 sessions. The 10 extra rows allow for settings.
    @Test(arguments: Removal.allCases) func releasesManyDependentsAfterRemoval(_ removal: Removal) async throws {
        let fixture = try QueueFixture()
        let (first, dependents) = try await fixture.storeSessions(dependents: 25_000)
        let rows = Locked((current: 0, largest: 0))
        let queue = try await fixture.open(storeObserver: { Self.countRows($0, rows) })
        rows.withLock { $0 = (0, 0) }
        switch removal {
        case .one: try await queue.remove(first, isForced: true)
        case .atIndex: try await queue.apply(.remove(isForced: true), to: .index(0))
        case .group: #expect(try await queue.apply(.remove(isForced: true), to: .sessions([first])) == [first])
        case .withdrawal: try await queue.withdraw(first)
        }
        #expect(await queue.sessionIDs() == dependents)
        while case .after? = try await queue.status(of: dependents[24_999]).why { await Task.yield() }
        let largest = rows.withLock { $0.largest }
        #expect(largest <= 10_010, "\(largest) rows in one transaction")
        #expect(try await queue.status(of: dependents[24_999]).why == .queueNotRunning)
        await queue.shutdown()
    }

    /// Each removed session has its own dependent, so the release of each dependent also changes a row.
    @Test func removesManySessionsWithDependentsInBatches() async throws {
        let fixture = try QueueFixture()
        let (firsts, dependents) = try await fixture.storePairs(6_000)
        let rows = Locked((current: 0, largest: 0))
        let queue = try await fixture.open(storeObserver: { Self.countRows($0, rows) })
        rows.withLock { $0 = (0, 0) }
        #expect(try await queue.apply(.remove(isForced: true), to: .sessions(firsts)).count == 6_000)
        while case .after? = try await queue.status(of: dependents[5_999]).why { await Task.yield() }
        #expect(await queue.sessionIDs() == dependents)
        // The limit is 10,000 sessions. The 10 extra rows allow for settings.
        let largest = rows.withLock { $0.largest }
        #expect(largest <= 10_010, "\(largest) rows in one transaction")
        await queue.shutdown()
    }

    /// A process was killed after the quarantine of a session, before all dependents were held.
    @Test func holdsManyDependentsOfMissingSessionInBatches() async throws {
        let fixture = try QueueFixture()
        let (_, dependents) = try await fixture.storeSessions(dependents: 25_000, isMissing: true)
        let rows = Locked((current: 0, largest: 0))
        let queue = try await fixture.open(storeObserver: { Self.countRows($0, rows) })
        while await queue.status().held < dependents.count { await Task.yield() }
        await queue.shutdown()
        let largest = rows.withLock { $0.largest }
        #expect(largest <= 10_010, "\(largest) rows in one transaction")
        let reopened = try await fixture.open()
        #expect(await reopened.status().held == dependents.count)
        await reopened.shutdown()
    }

    /// Counts the changed and removed sessions, and the stored settings, of each transaction. Each pending release is stored as a setting.
    private static func countRows(_ step: StoreStep, _ rows: Locked<(current: Int, largest: Int)>) {
        guard case .after(let statement) = step else { return }
        rows.withLock {
            if statement.hasPrefix("COMMIT") { $0.current = 0 }
            let prefixes = ["INSERT INTO schedule", "DELETE FROM session ", "INSERT INTO setting"]
            guard prefixes.contains(where: statement.hasPrefix) else { return }
            $0.current += 1
            $0.largest = max($0.largest, $0.current)
        }
    }

    private func expectNoChangeIfOneIsInvalid(_ queue: TransferQueue, _ ids: [SessionID]) async throws {
        let revision = await queue.status().orderRevision
        await #expect(throws: QueueError.self) { try await queue.apply(.hold, to: .sessions(ids + [SessionID()])) }
        #expect(await queue.status().held == 0)
        let error = await #expect(throws: QueueError.self) {
            try await queue.apply(.move(to: .index(3)), to: .sessions(Array(ids.dropFirst(2))))
        }
        #expect(error?.code == .indexOutOfRange)
        #expect(await queue.status().orderRevision == revision)
    }

    private func expectMoveOfWholeGroup(_ queue: TransferQueue, _ ids: [SessionID]) async throws {
        let moved = Array(ids.prefix(count - 2))
        try await queue.apply(.move(to: .index(1)), to: .sessions(moved))
        #expect(await queue.sessionIDs() == [ids[count - 2]] + moved + [ids[count - 1]])
        try await queue.apply(.move(to: .before(moved[count - 3])), to: .sessions(moved))
        #expect(await queue.sessionIDs() == [ids[count - 2]] + moved + [ids[count - 1]])
        try await queue.move(ids[count - 2], to: .index(count - 2))
        #expect(await queue.sessionIDs() == ids)
    }

    private func expectRunInOrder(_ queue: TransferQueue, _ ids: [SessionID], waitUntilRunning: () async throws -> Void) async throws {
        #expect(try await queue.apply(.runNext, to: .all) == ids)
        try await queue.start()
        try await waitUntilRunning()
        #expect(
            try await queue.status(of: ids[0]).state == .running,
            "the group's first session runs, not the first session of the last transaction")
        #expect(try await queue.status(of: ids[count - 1]).why == .order(after: ids[count - 2]))
        try await queue.stopAndWait()
    }

    private func expectRemovalWithDependents(_ queue: TransferQueue, _ ids: [SessionID], _ fixture: QueueFixture) async throws {
        var inside = try fixture.upload("1")
        inside.dependency = .after(ids[0])
        try await queue.enqueue(inside)
        var outside = try fixture.upload("1", to: "b")
        outside.dependency = .after(ids[1])
        let other = try await queue.enqueue(outside)
        let error = await #expect(throws: QueueError.self) { try await queue.apply(.remove(), to: .account("a")) }
        #expect(error?.code == .hasDependents)
        #expect(await queue.status().sessions == count + 2)
        try await queue.remove(other.id)
        try await queue.deleteAccount("a", cascades: true)
        #expect(await queue.status().sessions == 0)
        #expect(await queue.account("a") == nil)
    }
}
