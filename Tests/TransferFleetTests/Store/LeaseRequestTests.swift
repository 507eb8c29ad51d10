import Foundation
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// Requests to the members that have sessions: to run a session now, and to retry the endpoints of an account.
@Suite struct LeaseRequestTests {
    private func heartbeat(
        _ fleet: FleetFixture, _ member: FleetMemberDescription, _ leases: [FleetLease]
    ) async throws -> HeartbeatResponse {
        try await fleet.store.renew(leases.map { ($0.reference, SessionStatistics()) }, of: member)
    }

    /// The response to a heartbeat contains, for each session, the number of requests so far. A member therefore notices a request even if
    /// a notification or a response was lost.
    @Test func `a request to run a session reaches the session's member`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let member = try await fleet.join("m", slots: 2)
        let leases = try await fleet.store.take(for: member)
        #expect(leases.map(\.mustRun) == [false, false])
        #expect(try await heartbeat(fleet, member, leases).runRequests == [ids[0]: 0, ids[1]: 0])
        try await fleet.fleet.run(ids[0])
        for _ in 0..<2 {
            let found = try await heartbeat(fleet, member, leases)
            #expect(found.runRequests == [ids[0]: 1, ids[1]: 0] && found.requests == [ids[0]: .run, ids[1]: .run])
        }
        _ = try await fleet.fleet.pause(ids[1])
        try await fleet.fleet.run(ids[1])
        try await fleet.fleet.run(ids[0])
        let last = try await heartbeat(fleet, member, leases)
        #expect(last.runRequests == [ids[0]: 2, ids[1]: 1] && last.requests == [ids[0]: .run, ids[1]: .run])
        #expect(try await fleet.fleet.sessions(in: .all).map(\.state) == [.running, .running])
    }

    @Test func `a request to run a session remains in effect after the session's member dies`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(1)
        let (first, second) = (try await fleet.join("first"), try await fleet.join("second"))
        _ = try await fleet.store.take(for: first)
        try await fleet.fleet.run(ids[0])
        try await fleet.endLeases(of: first)
        let rescued = try await fleet.store.take(for: second)
        #expect(rescued.map(\.mustRun) == [true])
        #expect(try await heartbeat(fleet, second, rescued).runRequests == [ids[0]: 0])
        try await fleet.endLeases(of: second)
        #expect(try await fleet.store.take(for: first).map(\.mustRun) == [false])
    }

    @Test func `a member that takes a session learns of earlier requests to run or retry the session`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add([FleetFixture.draft("a"), FleetFixture.draft("b")], held: true)
        let member = try await fleet.join("m")
        try await fleet.fleet.run(ids[0])
        let lease = try #require(try await fleet.store.take(for: member).first)
        #expect(lease.id == ids[0] && lease.mustRun)
        #expect(try await fleet.finish(lease))
        try await fleet.fleet.cancel(ids[1])
        try await fleet.fleet.retry(ids[1])
        #expect(try await fleet.store.take(for: member).map(\.mustRun) == [true])
    }

    @Test func `a request to retry the endpoints of an account reaches the members that have its sessions`() async throws {
        let fleet = try await FleetFixture()
        let other = Account("other", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/o/")])
        try await fleet.fleet.save(other)
        try await fleet.add(1)
        try await fleet.add(1, account: "other")
        let member = try await fleet.join("m", slots: 2)
        let leases = try await fleet.store.take(for: member)
        let before = try await heartbeat(fleet, member, leases).retries
        #expect(before.keys.sorted() == ["other", "studio"])
        try await fleet.fleet.retryEndpoints(of: "studio")
        try await fleet.fleet.unblockAccount("studio")
        let account = try #require(try await fleet.fleet.account("studio")).account
        try await fleet.fleet.save(account)
        let after = try await heartbeat(fleet, member, leases).retries
        #expect(after["studio"] == (before["studio"] ?? 0) + 3 && after["other"] == before["other"])
        let missing = await #expect(throws: QueueError.self) { try await fleet.fleet.retryEndpoints(of: "missing") }
        #expect(missing?.code == .noSuchAccount)
    }

    @Test func `a request notifies the members that it concerns`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(1)
        let member = try await fleet.join("m")
        try await fleet.join("idle")
        #expect(try await fleet.store.take(for: member).count == 1)
        let listener = PostgresConnection(try PostgresURL(fleet.url)) { try $0.execute("LISTEN transferq_fleet") }
        #expect(try await listener.awaitNotifications(timeout: .zero).isEmpty)
        let requests: [(payloads: Set<String>, body: () async throws -> Void)] = [
            (["m"], { try await fleet.fleet.run(ids[0]) }),
            // The account may have been blocked, so other members may now take its sessions.
            (["", "m"], { try await fleet.fleet.unblockAccount("studio") }),
            (["", "m"], { try await fleet.fleet.retryEndpoints(of: "studio") }),
        ]
        for request in requests {
            try await request.body()
            try await fleet.query("SELECT pg_notify('transferq_fleet', 'end')")
            var found: Set<String> = []
            // PostgreSQL delivers notifications in the order of the commits.
            while !found.contains("end") { found.formUnion(try await listener.awaitNotifications(timeout: .seconds(60))) }
            #expect(found == request.payloads.union(["end"]))
        }
        await listener.close()
    }
}
