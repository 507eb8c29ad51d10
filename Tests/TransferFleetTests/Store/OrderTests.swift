import Foundation
import ScriptedHTTP
import Testing
import TransferFleet
import TransferKit

@Suite struct OrderTests {
    @Test(arguments: [99, 1 << 60, -5] as [Int64]) func `sessions can be moved to the end and added even if the stored count is wrong`(
        stored: Int64
    ) async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        try await fleet.query("UPDATE fleet SET sessions = $1", ["\(stored)"])
        if stored > 0 {
            try await fleet.fleet.move(ids[0], to: .end)
            #expect(try await fleet.fleet.sessionIDs() == [ids[1], ids[2], ids[0]])
        }
        let added = try await fleet.add(1)
        #expect(try await fleet.fleet.sessionIDs().count == 4)
        // `Fleet.create` counts the sessions again.
        #expect(try await !Fleet.create(at: fleet.url))
        try await fleet.fleet.move(added[0], to: .end)
        #expect(try await fleet.fleet.sessionIDs().last == added[0])
    }

    @Test func `sessions are inserted and moved at any index, many times`() async throws {
        let fleet = try await FleetFixture()
        var expected = try await fleet.add(5)
        // Each insertion at the same index halves the gap between two positions, so the fleet must renumber the positions several times.
        for number in 0..<60 {
            expected.insert(contentsOf: try await fleet.add([FleetFixture.draft("i\(number)")], at: 2), at: 2)
        }
        #expect(try await fleet.fleet.sessionIDs() == expected)
        let moves: [(Int, MoveDestination, Int)] = [
            (0, .end, expected.count - 1), (expected.count - 1, .front, 0), (3, .index(10), 10), (10, .index(3), 3),
        ]
        for (from, destination, to) in moves {
            try await fleet.fleet.move(expected[from], to: destination)
            expected.insert(expected.remove(at: from), at: to)
            #expect(try await fleet.fleet.sessionIDs() == expected, "\(destination)")
        }
        try await fleet.fleet.move(expected[7], to: .before(expected[2]))
        expected.insert(expected.remove(at: 7), at: 2)
        try await fleet.fleet.move(expected[1], to: .after(expected[5]))
        expected.insert(expected.remove(at: 1), at: 5)
        #expect(try await fleet.fleet.sessionIDs() == expected)
        #expect(try await fleet.fleet.sessions(3..<6).map(\.index) == [3, 4, 5])
        #expect(try await fleet.fleet.sessions(-2..<1).map(\.index) == [0])
        await #expect(throws: QueueError.self) { try await fleet.fleet.move(expected[0], to: .index(expected.count)) }
        await #expect(throws: QueueError.self) { try await fleet.add([FleetFixture.draft("x")], at: expected.count + 1) }
    }

    /// The required positions exceed the range of the database's integer type.
    @Test(arguments: [1, 2]) func `an addition beyond the free positions fails, and changes no session`(count: Int) async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(count)
        try await fleet.query("UPDATE session SET position = $2 WHERE id = $1", ["\(ids[count - 1])", "\(Int64(1) << 62)"])
        let error = await #expect(throws: QueueError.self) {
            _ = try await fleet.store.locked { try $0.makeRoom(for: 1 << 42, at: count).position }
        }
        #expect(error?.code == .invalidRequest)
        let text = "The order of the fleet has no free positions for 4398046511104 more sessions."
        #expect(error?.message.hasPrefix(text) == true, "\(error?.message ?? "")")
        #expect(try await fleet.fleet.sessionIDs() == ids)
    }

    @Test func `an operation with an index and an old revision of the order changes no session`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        let revision = try await fleet.fleet.status().orderRevision
        try await fleet.fleet.hold(.at(1, expecting: revision))
        #expect(try await fleet.state(of: ids[1]) == .held)
        try await fleet.fleet.move(ids[2], to: .front)
        await #expect(throws: QueueError(.staleOrder, "The order has changed since it was read. Read it again.")) {
            try await fleet.fleet.cancel(.at(1, expecting: revision))
        }
        #expect(try await fleet.state(of: ids[0]) == .waiting)
    }

    /// Compares the order, the events and the returned sessions with an array. Some moves use up the gaps between positions.
    @Test func `groups move to any index as one block`() async throws {
        let fleet = try await FleetFixture()
        var expected = try await fleet.add(40)
        var generator = SplitMix(seed: 11)
        for _ in 0..<60 {
            let chosen = Set(expected.shuffled(using: &generator).prefix(Int.random(in: 2...7, using: &generator)))
            let block = expected.filter(chosen.contains)
            var (others, former) = (expected.filter { !chosen.contains($0) }, expected)
            let other = expected.randomElement(using: &generator) ?? block[0]
            let before = expected.prefix { $0 != other }.count { !chosen.contains($0) }
            let index = Int.random(in: 0...others.count, using: &generator)
            let status = try await fleet.fleet.status()
            let destinations: [(MoveDestination, Int)] = [
                (.front, 0), (.end, others.count), (.index(index, expecting: status.orderRevision), index), (.before(other), before),
                (.after(other), chosen.contains(other) ? before : before + 1),
            ]
            let (destination, expectedIndex) = destinations.randomElement(using: &generator) ?? destinations[0]
            others.insert(contentsOf: block, at: expectedIndex)
            expected = others
            let changed = try await fleet.fleet.apply(.move(to: destination), to: .sessions(block))
            #expect(try await fleet.fleet.sessionIDs() == expected, "\(destination)")
            var moved: [SessionID] = []
            for event in try await fleet.store.changes(after: status.revision, limit: 1_000).events {
                guard case .moved(let id, let from, let to) = event.kind else { continue }
                #expect(former.remove(at: from) == id && from != to)
                former.insert(id, at: to)
                moved.append(id)
            }
            #expect(former == expected && moved == changed)
        }
        let revision = try await fleet.fleet.status().orderRevision
        await #expect(throws: QueueError(.staleOrder, "The order has changed since it was read. Read it again.")) {
            try await fleet.fleet.apply(.move(to: .index(0, expecting: revision - 1)), to: .sessions([expected[8], expected[9]]))
        }
        await #expect(throws: QueueError(.indexOutOfRange, "Cannot move 2 sessions to index 39: the fleet has 40 sessions.")) {
            try await fleet.fleet.apply(.move(to: .index(39)), to: .sessions([expected[8], expected[9]]))
        }
        #expect(try await fleet.fleet.sessionIDs() == expected)
    }

    @Test func `an addition requires the expected revision of the order, unless it adds only duplicates`() async throws {
        let fleet = try await FleetFixture()
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try Data("content".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        func request(_ key: String) throws -> SessionRequest {
            var request = try SessionRequest.upload(items: [TransferItem(file)], to: "studio")
            request.deduplicationKey = key
            return request
        }
        let revision = try await fleet.fleet.status().orderRevision
        let first = try await fleet.fleet.add([try request("a")], at: 0, expecting: revision)
        await #expect(throws: QueueError(.staleOrder, "The order has changed since it was read. Read it again.")) {
            try await fleet.fleet.add([try request("b")], at: 0, expecting: revision)
        }
        #expect(try await fleet.fleet.add([try request("a")], at: 0, expecting: revision) == first)
        #expect(try await fleet.fleet.sessionIDs() == first)
    }

    @Test func `a duplicate adds no session`() async throws {
        let fleet = try await FleetFixture()
        let first = try await fleet.add([FleetFixture.draft("a", deduplicationKey: "k"), FleetFixture.draft("b", deduplicationKey: "k")])
        #expect(first[0] == first[1])
        #expect(try await fleet.add([FleetFixture.draft("c", deduplicationKey: "k")]) == [first[0]])
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        #expect(try await fleet.finish(lease))
        #expect(try await fleet.add([FleetFixture.draft("d", deduplicationKey: "k")]) != [first[0]])
        #expect(try await fleet.fleet.status().sessions == 2)
    }

    @Test func `dependencies must exist and must not form a cycle`() async throws {
        let fleet = try await FleetFixture()
        await #expect(throws: QueueError.self) { try await fleet.add([FleetFixture.draft("a", after: SessionID())]) }
        var (a, b) = (FleetFixture.draft("a"), FleetFixture.draft("b"))
        (a.dependency, b.dependency) = (SessionDependency(b.id), SessionDependency(a.id))
        let drafts = [a, b]
        await #expect(throws: QueueError.self) { try await fleet.add(drafts) }
        #expect(try await fleet.fleet.status().sessions == 0)
        let ids = try await fleet.add([FleetFixture.draft("c")])
        try await fleet.add([FleetFixture.draft("d", after: ids[0])])
        await #expect(throws: QueueError.self) { try await fleet.fleet.remove(ids[0]) }
        try await fleet.fleet.remove(ids[0], isForced: true)
        #expect(try await fleet.fleet.sessions(0..<5).map(\.name) == ["d"])
    }

    @Test func `events have consecutive revisions, even for concurrent changes`() async throws {
        let fleet = try await FleetFixture()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let other = try Fleet(fleet.url, place: .anywhere)
                    let store = FleetStore(try PostgresURL(fleet.url))
                    for number in 0..<5 {
                        let draft = FleetFixture.draft("s\(number)")
                        let ids = try await store.locked { try $0.enqueue([draft], at: nil, place: .anywhere, isHeld: false) }
                        try await other.hold(ids[0])
                    }
                }
            }
            try await group.waitForAll()
        }
        let events = try await fleet.store.changes(after: 0, limit: 1_000).events
        #expect(events.map(\.revision) == (1...UInt64(events.count)).map { $0 })
        #expect(try await fleet.fleet.status().revision == UInt64(events.count))
        let page = try await fleet.store.changes(after: 10, limit: 3).events
        #expect(page.map(\.revision) == [11, 12, 13])
        var order: UInt64 = 0
        for case .didChangeQueue(let revision) in events.map(\.kind) {
            #expect(revision == order + 1)
            order = revision
        }
        #expect(order == 40)
    }

    @Test func `a group operation changes nothing in a session that it skips`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(1)
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        #expect(try await fleet.finish(lease))
        let before = try await fleet.fleet.status(of: ids[0])
        #expect(before.endedAt != nil && before.attempts == 1)
        #expect(try await fleet.fleet.apply(.run(again: true), to: .state(.completed)).isEmpty)
        #expect(try await fleet.fleet.status(of: ids[0]) == before)
    }

    @Test func `a group can be removed only if no other session depends on it`() async throws {
        let fleet = try await FleetFixture()
        let first = try await fleet.add(1)[0]
        let second = try await fleet.add([FleetFixture.draft("second", after: first)])[0]
        let third = try await fleet.add([FleetFixture.draft("third", after: second)])[0]
        await #expect(throws: QueueError.self) { try await fleet.fleet.apply(.remove(), to: .sessions([first, second])) }
        #expect(try await fleet.fleet.sessionIDs() == [first, second, third])
        #expect(try await fleet.fleet.apply(.remove(), to: .all) == [first, second, third])
        #expect(try await fleet.fleet.sessionIDs().isEmpty)
    }

    @Test func `a group operation releases the lock after its time limit`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        let applied = try await fleet.store.locked { try $0.apply(.hold, toEach: ids, within: .zero) }
        #expect(applied.changed == [ids[0]] && applied.handled == 1)
        #expect(try await fleet.fleet.sessions(in: .all).map(\.state) == [.held, .waiting, .waiting])
    }

    @Test func `a group operation skips sessions whose state does not allow it`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        try await fleet.fleet.cancel(ids[1])
        #expect(try await fleet.fleet.apply(.hold, to: .account("studio")) == [ids[0], ids[2]])
        #expect(try await fleet.fleet.apply(.release, to: .state(.held)) == [ids[0], ids[2]])
        #expect(try await fleet.fleet.apply(.retry, to: .cancelled) == [ids[1]])
        #expect(try await fleet.fleet.apply(.move(to: .front), to: .sessions([ids[1], ids[2]])) == [ids[1], ids[2]])
        #expect(try await fleet.fleet.sessionIDs() == [ids[1], ids[2], ids[0]])
        await #expect(throws: QueueError.self) { try await fleet.fleet.deleteAccount("studio", cascades: false) }
        try await fleet.fleet.deleteAccount("studio", cascades: true)
        #expect(try await fleet.fleet.accounts().isEmpty)
    }
}
