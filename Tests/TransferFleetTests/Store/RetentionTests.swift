import Foundation
import Testing
import TransferFleet
import TransferKit

/// The removal of completed sessions.
@Suite(.timeLimit(.minutes(2))) struct RetentionTests {
    /// Completes the next session.
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

    /// The database's clock determines the age. The next take of any member removes old sessions.
    @Test func `completed sessions stay for a time`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        let member = try await fleet.join("m")
        try await fleet.fleet.setRetention(.age(.seconds(3_600)))
        for _ in 0..<3 { _ = try await completeNext(fleet, by: member) }
        try await fleet.query("UPDATE session SET ended_at = ended_at - interval '2 h' WHERE id = $1", ["\(ids[1])"])
        #expect(try await fleet.store.take(for: member).isEmpty)
        #expect(try await fleet.fleet.sessionIDs() == [ids[0], ids[2]])
    }

    @Test func `many completed sessions are removed in several transactions`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.add(250)
        try await fleet.query("UPDATE session SET state = 'completed', ended_at = clock_timestamp()")
        try await fleet.fleet.setRetention(.count(20))
        #expect(try await fleet.fleet.status().completed == 20)
    }
}
