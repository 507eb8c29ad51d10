import Foundation
import Testing
import TransferFleet
import TransferKit

@Suite struct ConnectionTests {
    private func message(_ url: String) async -> String {
        do {
            let fleet = try Fleet(url, place: .anywhere)
            _ = try await fleet.status()
            return "no error"
        } catch let error as QueueError {
            return error.message
        } catch {
            return "\(error)"
        }
    }

    @Test func `a URL of another kind is rejected`() async throws {
        #expect(await message("mysql://db/x").hasPrefix("The URL of a fleet must begin with postgresql://"))
        #expect(await message("postgresql://[::1").hasPrefix("The URL of the fleet is not valid."))
        let unreachable = await message("postgresql://127.0.0.1:1/x?application_name=a%40b&connect_timeout=2")
        #expect(unreachable.contains("postgresql://127.0.0.1:1/x."))
    }

    @Test func `the messages for an unreachable server and for a wrong password omit the password`() async throws {
        let server = try PostgresServer.shared.get()
        let refused = await message("postgresql://owner:s3cret@127.0.0.1:1/x?connect_timeout=2")
        #expect(refused.contains("Cannot reach the fleet's database at postgresql://127.0.0.1:1/x."))
        #expect(refused.contains("Connection refused"))
        #expect(!refused.contains("s3cret") && !refused.contains("\t"))
        try await server.query("DO $$ BEGIN CREATE ROLE guarded LOGIN PASSWORD 'right'; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        let wrong = await message("postgresql://guarded:wrong@/postgres?host=\(server.folder)")
        #expect(wrong.contains("password authentication failed"))
        #expect(wrong.contains("Check the URL, the password"))
        #expect(await message(server.url("nodb")).contains("database \"nodb\" does not exist"))
    }

    @Test(arguments: [
        "u:se?cret@db/x", "u:se/cret@db/x", "u:se#cret@db/x", "u:se%cret@db/x", "u:se%00cret@db/x", "u:se@cret@db/x", "u:secret/x",
        "db/x?password=se%cret", "db/x?password=a&secret", "db/x?password=a=b&secret=", "se?cret:p@db/x",
    ]) func `the message for a malformed URL contains no part of the password`(rest: String) async throws {
        let text = await message("postgresql://\(rest)")
        #expect(text.hasPrefix("The URL of the fleet") || text.hasPrefix("The user or the password in the URL"), "\(text)")
        #expect(!text.contains("cret"), "\(text)")
    }

    @Test func `a text with a zero byte is rejected, not cut off`() async throws {
        let fleet = try await FleetFixture()
        var draft = FleetFixture.draft("a")
        draft.tags = ["a\u{0}b"]
        let tagged = draft
        let error = await #expect(throws: QueueError.self) { try await fleet.add([tagged]) }
        #expect(error?.code == .invalidRequest)
        #expect(try await fleet.fleet.sessions(in: .tag("a")).isEmpty)
    }

    @Test func `a database without a fleet, and a database of a newer version, are rejected`() async throws {
        let server = try PostgresServer.shared.get()
        let database = try await server.createDatabase()
        #expect(await message(server.url(database)) == "The database has no fleet. Create it with: transferq --fleet URL fleet init")
        #expect(try await Fleet.create(at: server.url(database)))
        #expect(try await !Fleet.create(at: server.url(database)))
        #expect(await message(server.url(database)) == "no error")
        try await server.query("UPDATE transferq.fleet SET version = 99", in: database)
        #expect(await message(server.url(database)).hasPrefix("A newer version of transferq has migrated the fleet's tables (version 99;"))
        await #expect(throws: QueueError.self) { try await Fleet.create(at: server.url(database)) }
    }

    @Test func `a member that is too old for the fleet is rejected`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.query("UPDATE fleet SET minimum_member = 99")
        await #expect(throws: QueueError.self) { try await fleet.join("m") }
    }

    @Test func `a read-only server is rejected`() async throws {
        let fleet = try await FleetFixture()
        let url = fleet.server.url(fleet.database, options: "&options=-c%20default_transaction_read_only%3Don")
        #expect(await message(url).hasPrefix("The database is a read-only standby."))
    }

    @Test func `a user without permissions gets a message that names the missing permission`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.server.query("DO $$ BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        let text = await message(fleet.server.url(fleet.database, user: "stranger"))
        #expect(text.contains("The database user lacks a permission") && text.contains("permission denied for schema transferq"))
    }

    @Test func `a message names the server's connection limit`() async throws {
        let fleet = try await FleetFixture()
        let role = "r\(UUID().uuidString.lowercased().replacing("-", with: ""))"
        try await fleet.query("CREATE ROLE \(role) LOGIN CONNECTION LIMIT 1")
        try await fleet.query("GRANT USAGE ON SCHEMA transferq TO \(role)")
        try await fleet.query("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA transferq TO \(role)")
        let url = fleet.server.url(fleet.database, user: role)
        let first = try Fleet(url, place: .anywhere)
        let ids = try await fleet.add(1)
        #expect(try await first.sessionIDs() == ids)
        let text = await message(url)
        #expect(text.contains("too many connections for role") && text.contains("connection limits"), "\(text)")
        // The existing connection still works. After that connection has ended, another one can be opened.
        #expect(try await first.sessionIDs() == ids)
        await first.close()
        try await fleet.server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [role])
        #expect(await message(url) == "no error")
    }

    @Test func `two concurrent calls create only one fleet`() async throws {
        let server = try PostgresServer.shared.get()
        let url = server.url(try await server.createDatabase())
        async let first = Fleet.create(at: url)
        async let second = Fleet.create(at: url)
        let created = try await [first, second]
        #expect(created.count { $0 } == 1)
    }

    @Test func `a connection that was lost between two calls is opened again`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(1)
        try await fleet.server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [fleet.database])
        #expect(try await fleet.fleet.sessionIDs() == ids)
    }

    @Test func `an error in the middle of a transaction changes nothing`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(1)
        await #expect(throws: QueueError.self) {
            try await fleet.store.locked { transaction in
                _ = try transaction.apply(.hold, to: .id(ids[0]))
                _ = try transaction.apply(.retry, to: .id(ids[0]))
            }
        }
        #expect(try await fleet.state(of: ids[0]) == .waiting)
    }
}

/// The permissions that the article "Running a fleet" documents for the members' database user.
@Suite struct PermissionTests {
    @Test func `a member needs only the documented permissions`() async throws {
        let fleet = try await FleetFixture()
        let role = "r\(UUID().uuidString.lowercased().replacing("-", with: ""))"
        try await fleet.query("CREATE ROLE \(role) LOGIN")
        try await fleet.query("GRANT USAGE ON SCHEMA transferq TO \(role)")
        try await fleet.query("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA transferq TO \(role)")
        let url = fleet.server.url(fleet.database, user: role)
        try await Fleet(url, place: .anywhere).checkMemberPrivileges()
        let store = FleetStore(try PostgresURL(url))
        let draft = FleetFixture.draft("s")
        _ = try await store.locked { try $0.enqueue([draft], at: nil, place: .anywhere, isHeld: false) }
        let member = FleetMemberDescription(name: "m", identity: UUID().uuidString, slots: 1)
        try await store.join(member)
        let lease = try #require(try await store.take(for: member).first)
        #expect(try await store.renew([(lease.reference, SessionStatistics())], of: member).requests == [draft.id: .run])
        #expect(try await store.locked { try $0.finish(lease.reference, error: nil, statistics: SessionStatistics()) })
        try await store.leave(member)
        await store.connection.close()
    }

    /// `agent start` makes this check. Without the check, a member would wait for the database forever.
    @Test func `a user that may only read can't be a member`() async throws {
        let fleet = try await FleetFixture()
        let role = "r\(UUID().uuidString.lowercased().replacing("-", with: ""))"
        try await fleet.query("CREATE ROLE \(role) LOGIN")
        try await fleet.query("GRANT USAGE ON SCHEMA transferq TO \(role)")
        try await fleet.query("GRANT SELECT ON ALL TABLES IN SCHEMA transferq TO \(role)")
        let reader = try Fleet(fleet.server.url(fleet.database, user: role), place: .anywhere)
        let error = await #expect(throws: QueueError.self) { try await reader.checkMemberPrivileges() }
        #expect(error?.message.contains("permission denied for table") == true, "\(error?.message ?? "")")
        await reader.close()
    }
}
