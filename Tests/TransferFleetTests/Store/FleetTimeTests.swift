import Foundation
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// The recorded times of a session if the database's clock is set back.
@Suite(.timeLimit(.minutes(2))) struct FleetTimeTests {
    /// Changes a recorded time as if the database's clock had been set back by an hour afterwards.
    private func setClockBack(after column: String, of id: SessionID, in fleet: FleetFixture) async throws {
        try await fleet.query("UPDATE session SET \(column) = \(column) + interval '1 hour' WHERE id = $1", ["\(id)"])
    }

    private func checkTimes(of id: SessionID, _ state: SessionState, in fleet: FleetFixture) async throws {
        let status = try await fleet.fleet.status(of: id)
        #expect(status.state == state)
        let ended = try #require(status.endedAt)
        let started = status.startedAt ?? status.createdAt
        #expect(status.createdAt <= started && started <= ended)
    }

    @Test(arguments: [.completed, .failed, .cancelled] as [SessionState]) func `a session does not end before it started`(
        state: SessionState
    ) async throws {
        let fleet = try await FleetFixture()
        let id = try await fleet.add(1)[0]
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        try await setClockBack(after: "started_at", of: id, in: fleet)
        switch state {
        case .completed: #expect(try await fleet.finish(lease))
        case .failed: #expect(try await fleet.finish(lease, error: TransferError(.permanent, .rejected, "No.")))
        default: try await fleet.fleet.cancel(id)
        }
        try await checkTimes(of: id, state, in: fleet)
    }

    @Test func `a session that can't be read does not end before it started`() async throws {
        let fleet = try await FleetFixture()
        let id = try await fleet.add(1)[0]
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        try await setClockBack(after: "started_at", of: id, in: fleet)
        #expect(try await fleet.giveBack(lease))
        try await fleet.query("UPDATE content SET draft = '{' WHERE session = $1", ["\(id)"])
        #expect(try await fleet.store.take(for: member).isEmpty)
        try await checkTimes(of: id, .failed, in: fleet)
    }

    @Test func `a session neither starts nor ends before it was added`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        for id in ids { try await setClockBack(after: "created_at", of: id, in: fleet) }
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        #expect(try await fleet.finish(lease))
        try await checkTimes(of: ids[0], .completed, in: fleet)
        try await fleet.fleet.cancel(ids[1])
        try await checkTimes(of: ids[1], .cancelled, in: fleet)
    }
}
