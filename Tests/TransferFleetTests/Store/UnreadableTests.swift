import Foundation
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// Rows that this version can't read, for example after a manual change, and positions at the ends of their range. Unreadable rows affect only
/// their own session, account or event.
@Suite struct UnreadableTests {
    @Test func `an unreadable session fails, and the next session is taken`() async throws {
        let fleet = try await FleetFixture()
        var ids = try await fleet.add(3)
        ids += try await fleet.add([FleetFixture.draft("after", after: ids[0], acceptsAnyEnd: true)])
        try await fleet.query("UPDATE content SET draft = '{' WHERE session = $1", ["\(ids[0])"])
        try await fleet.query(
            "INSERT INTO progress(session, position, part, generation, event) VALUES ($1, 0, 'end', 0, 'x')", ["\(ids[1])"])
        let member = try await fleet.join("m", slots: 4)
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[2], ids[3]])
        let statuses = try await fleet.fleet.sessions(in: .all)
        #expect(statuses.map(\.state) == [.failed, .failed, .running, .running])
        #expect(statuses[0].error?.message.contains("unreadable") == true)
        #expect(statuses[1].error?.message.contains("unreadable") == true)
        #expect(try await fleet.fleet.items(of: ids[0], from: 0, limit: 10).isEmpty)
    }

    @Test func `unreadable statistics and errors hide nothing else`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        try await fleet.query("UPDATE session SET statistics = '?', error = '?' WHERE id = $1", ["\(ids[0])"])
        let statuses = try await fleet.fleet.sessions(in: .all)
        #expect(statuses.map(\.id) == ids && statuses[0].name == "s0")
        #expect(statuses[0].error?.code == .storageDamaged && statuses[1].error == nil)
    }

    @Test func `an unreadable account is blocked, and saving the account repairs it`() async throws {
        let fleet = try await FleetFixture()
        let other = Account("other", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/o/")])
        try await fleet.fleet.save(other)
        let blocked = try await fleet.add(2, account: "other")
        let studio = try await fleet.add(1)
        try await fleet.query("UPDATE account SET definition = '{' WHERE name = 'other'")
        let member = try await fleet.join("m", slots: 3)
        #expect(try await fleet.store.take(for: member).map(\.id) == studio)
        let accounts = try await fleet.fleet.accounts()
        #expect(accounts.map(\.account.name) == ["other", "studio"])
        #expect(accounts[0].blockingError?.code == .storageDamaged && accounts[1].blockingError == nil)
        try await fleet.fleet.save(other)
        #expect(try await fleet.fleet.account("other")?.account == other)
        #expect(try await fleet.store.take(for: member).map(\.id) == blocked)
    }

    @Test func `an unreadable event leaves a gap in the revisions`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.add(1)
        try await fleet.query("UPDATE event SET kind = '?' WHERE revision = 2")
        let revisions = try await fleet.store.changes(after: 0, limit: 1_000).events.map(\.revision)
        #expect(revisions.starts(with: [1, 3]))
    }

    @Test func `a page after the last item is empty`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add([FleetFixture.draft("a", files: 3)])
        for position in [Int64.min, -1, 0, 2, 3, 4, 1_000, .max] {
            let items = try await fleet.fleet.items(of: ids[0], from: position, limit: 10)
            #expect(items.count == (position <= 0 ? 3 : position == 2 ? 1 : 0), "\(position)")
        }
    }

    @Test func `positions at the end of their range are renumbered`() async throws {
        let fleet = try await FleetFixture()
        var ids = try await fleet.add(3)
        try await fleet.query("UPDATE session SET position = $2 WHERE id = $1", ["\(ids[2])", "\(Int64.max)"])
        try await fleet.query("UPDATE session SET position = $2 WHERE id = $1", ["\(ids[0])", "\(Int64.min)"])
        ids += try await fleet.add([FleetFixture.draft("end")])
        #expect(try await fleet.fleet.sessionIDs() == ids)
        try await fleet.query("UPDATE session SET position = $2 WHERE id = $1", ["\(ids[3])", "\(Int64.max)"])
        try await fleet.query("UPDATE session SET position = $2 WHERE id = $1", ["\(ids[0])", "\(Int64.min)"])
        ids.insert(contentsOf: try await fleet.add([FleetFixture.draft("front")], at: 0), at: 0)
        #expect(try await fleet.fleet.sessionIDs() == ids)
        try await fleet.fleet.move(ids[1], to: .end)
        ids.append(ids.remove(at: 1))
        #expect(try await fleet.fleet.sessionIDs() == ids)
    }
}
