import Foundation
import Testing
import TransferFleet
import TransferKit

@Suite(.timeLimit(.minutes(2))) struct RetentionTests {
    /// Takes and completes the next session.
    private func completeNext(_ fleet: FleetFixture, by member: FleetMemberDescription) async throws -> SessionID {
        let lease = try #require(try await fleet.store.take(for: member).first)
        #expect(try await fleet.finish(lease))
        return lease.id
    }

    @Test func `only the last completed sessions stay`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(6)
        let member = try await fleet.join("m")
        try await fleet.fleet.setRetention(.count(2))
        #expect(try await fleet.fleet.status().retention == .count(2))
        for _ in 0..<4 { _ = try await completeNext(fleet, by: member) }
        #expect(try await fleet.fleet.sessionIDs() == Array(ids[2...]))
        // Failed and waiting sessions stay.
        let lease = try #require(try await fleet.store.take(for: member).first)
        #expect(try await fleet.finish(lease, error: .init(.permanent, .rejected, "No.")))
        try await fleet.fleet.setRetention(.count(0))
        #expect(try await fleet.fleet.sessionIDs() == Array(ids[4...]))
        let removals = try await fleet.store.changes(after: 0, limit: 1_000).events.compactMap { event -> [Int]? in
            if case .removed(_, let indices) = event.kind { indices } else { nil }
        }
        #expect(removals == [[0], [0], [0, 1]])
        try await fleet.fleet.setRetention(nil)
        #expect(try await fleet.fleet.status().retention == .keepAll)
        _ = try await completeNext(fleet, by: member)
        #expect(try await fleet.fleet.sessionIDs() == Array(ids[4...]))
    }

    /// The database's clock determines the age. The next time a member takes sessions, old sessions are removed.
    @Test func `completed sessions stay for the configured time`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        let member = try await fleet.join("m")
        try await fleet.fleet.setRetention(.age(.seconds(3_600)))
        for _ in 0..<3 { _ = try await completeNext(fleet, by: member) }
        try await fleet.query("UPDATE session SET ended_at = ended_at - interval '2 h' WHERE id = $1", ["\(ids[1])"])
        #expect(try await fleet.store.take(for: member).isEmpty)
        #expect(try await fleet.fleet.sessionIDs() == [ids[0], ids[2]])
    }

    /// Adds unreadable progress rows to a session.
    private func addProgress(_ count: Int, _ id: SessionID, part: String = "end", in fleet: FleetFixture) async throws {
        try await fleet.query(
            """
            INSERT INTO progress(session, position, part, generation, event)
            SELECT $1::uuid, n, $2::text, 0, '{}' FROM generate_series(1, $3::bigint) AS n
            """, ["\(id)", part, "\(count)"])
    }

    private func count(_ table: String, in fleet: FleetFixture) async throws -> Int64 {
        try await fleet.query("SELECT count(*) FROM \(table)")[0].integer(0)
    }

    /// The session has more rows than one transaction deletes. Each time a member takes sessions, more rows are deleted.
    @Test func `the rows of a large session are deleted in several transactions`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        let member = try await fleet.join("m")
        try await addProgress(20_001, ids[0], in: fleet)
        try await fleet.fleet.remove(ids[0])
        #expect(try await fleet.fleet.sessionIDs() == Array(ids[1...]))
        #expect(try await count("progress", in: fleet) == 10_001)
        let lease = try #require(try await fleet.store.take(for: member).first)
        #expect(try await count("progress", in: fleet) == 1)
        #expect(try await fleet.store.take(for: member).isEmpty)
        #expect(try await count("progress", in: fleet) == 0)
        #expect(try await count("session", in: fleet) == 2)
        // The same applies to a session that a member has, and to a completed session whose retention has ended.
        try await addProgress(10_001, ids[1], in: fleet)
        try await fleet.fleet.remove(ids[1])
        #expect(try await fleet.giveBack(lease))
        #expect(try await count("progress", in: fleet) == 1)
        try await addProgress(10_000, ids[2], in: fleet)
        try await fleet.query("UPDATE session SET state = 'completed', ended_at = clock_timestamp() WHERE id = $1", ["\(ids[2])"])
        try await fleet.fleet.setRetention(.count(0))
        #expect(try await fleet.fleet.sessionIDs().isEmpty)
        #expect(try await count("progress", in: fleet) == 1)
        // The account can be removed, because the call deletes the remaining rows first.
        try await fleet.fleet.deleteAccount("studio", cascades: true)
        #expect(try await count("progress", in: fleet) == 0)
        #expect(try await count("session", in: fleet) == 0)
    }

    /// Each transaction deletes the sessions whose rows it has deleted. Otherwise, sessions without rows would accumulate, and each transaction would
    /// examine these sessions again.
    @Test func `many removed sessions are deleted together with their rows`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(150)
        let member = try await fleet.join("m")
        for id in ids { try await addProgress(101, id, in: fleet) }
        try await fleet.query("UPDATE session SET is_removed = true, state = 'cancelled'")
        #expect(try await fleet.store.take(for: member).isEmpty)
        #expect(try await count("progress", in: fleet) == 150 * 101 - 10_000)
        #expect(try await count("session", in: fleet) == 51)
        #expect(try await fleet.store.take(for: member).isEmpty)
        #expect(try await count("session", in: fleet) == 0)
    }

    @Test func `the end of a large session deletes only as many rows as one transaction may delete`() async throws {
        let fleet = try await FleetFixture()
        let id = try await fleet.add(1)[0]
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        try await addProgress(10_001, id, part: "checkpoint a", in: fleet)
        #expect(try await fleet.finish(lease))
        #expect(try await fleet.state(of: id) == .completed)
        #expect(try await count("progress", in: fleet) == 1)
    }

    @Test func `many completed sessions are removed in several transactions`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.add(250)
        try await fleet.query("UPDATE session SET state = 'completed', ended_at = clock_timestamp()")
        try await fleet.fleet.setRetention(.count(20))
        #expect(try await fleet.fleet.status().completed == 20)
    }
}
