import Foundation
import TUSLoopback
import Testing
import TransferFleet
import TransferKit

@Suite(.timeLimit(.minutes(5))) struct OutageTests {
    @Test func `a short outage interrupts no transfer`() async throws {
        let database = try PostgresServer()
        let fixture = try await MemberFixture(database: database)
        let id = try await fixture.add("reel", sizes: [6_000_000, 100_000])
        fixture.server.stopContent(at: 3_000_000)
        let member = try await fixture.member("a")
        let task = Task { try await member.run() }
        try await fixture.waitForBytes(3_000_000, of: "reel-0")
        try await BlockingIO.run {
            database.stop()
            try database.restart()
        }
        fixture.server.stopContent(at: nil)
        try await fixture.waitForAll([id])
        #expect(try await fixture.fleet.fleet.status(of: id).attempts == 1)
        await member.stop()
        try await task.value
        try fixture.checkArrived("reel", files: 2)
        #expect(fixture.server.statistics.bytesStored == 6_100_000)
    }

    /// The hosts of a fleet can start in any order.
    @Test func `a member that starts before the database joins later`() async throws {
        let database = try PostgresServer()
        let fixture = try await MemberFixture(database: database)
        let id = try await fixture.add("reel", sizes: [100_000])
        await BlockingIO.run { database.stop() }
        let member = try await fixture.member("a")
        let task = Task { try await member.run() }
        await #expect(throws: QueueError.self) { try await fixture.fleet.fleet.status() }
        try await BlockingIO.run { try database.restart() }
        try await fixture.waitForAll([id])
        await member.stop()
        try await task.value
        try fixture.checkArrived("reel", files: 1)
    }

    @Test func `after a long outage, the session continues once the database is back`() async throws {
        let database = try PostgresServer()
        let fixture = try await MemberFixture(database: database)
        let id = try await fixture.add("reel", sizes: [6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        let member = try await fixture.member("a")
        let task = Task { try await member.run() }
        try await fixture.waitForBytes(3_000_000, of: "reel-0")
        await BlockingIO.run { database.stop() }
        // The member uses its own clock to stop before another member can take the session.
        try await member.waitUntilLeft(id)
        await #expect(throws: QueueError.self) { try await fixture.fleet.fleet.status() }
        fixture.server.stopContent(at: nil)
        try await BlockingIO.run { try database.restart() }
        try await fixture.waitForAll([id])
        await member.stop()
        try await task.value
        try fixture.checkArrived("reel", files: 1)
        #expect(fixture.server.statistics.bytesStored == 6_000_000)
    }

    /// A standby server replaces the primary server, which crashed. The standby has all committed changes.
    @Test func `transfers continue after a failover`() async throws {
        let primary = try PostgresServer()
        let standby = try PostgresServer(standbyOf: primary)
        let fixture = try await MemberFixture(database: primary)
        // `ALTER SYSTEM` can't run in a transaction, so it needs a separate connection. From here on, each commit waits for the standby.
        let link = try PostgresLink(try PostgresURL(fixture.fleet.url))
        try link.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        try link.query("SELECT pg_reload_conf()")
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        let note = try await fixture.add("note", sizes: [100_000])
        fixture.server.stopContent(at: 3_000_000)
        let member = try await fixture.member("a")
        let task = Task { try await member.run() }
        try await fixture.waitForBytes(3_000_000, of: "reel-0")
        let standbyURL = standby.url(fixture.fleet.database)
        let readOnly = await #expect(throws: QueueError.self) { try await Fleet(standbyURL, place: .anywhere).status() }
        #expect(readOnly?.message.hasPrefix("The database is a read-only standby.") == true)
        await BlockingIO.run { primary.stop(crashes: true) }
        let refused = await #expect(throws: QueueError.self) { try await fixture.fleet.fleet.hold(note) }
        #expect(refused?.message.contains("Cannot reach the fleet's database") == true)
        let promotion = try PostgresLink(try PostgresURL(standby.url("postgres")))
        try promotion.query("SELECT pg_promote()")
        try await fixture.fleet.fleet.hold(note)
        fixture.server.stopContent(at: nil)
        try await fixture.waitForAll([reel])
        #expect(try await fixture.fleet.fleet.status(of: reel).attempts == 1)
        try await fixture.fleet.fleet.release(note)
        try await fixture.waitForAll([note])
        await member.stop()
        try await task.value
        try fixture.checkArrived("reel", files: 1)
        try fixture.checkArrived("note", files: 1)
        #expect(fixture.server.statistics.bytesStored == 6_100_000)
    }
}
