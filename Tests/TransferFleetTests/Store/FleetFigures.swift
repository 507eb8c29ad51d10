import Foundation
import TUSLoopback
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// Measures a fleet with many waiting sessions and an account at its limit. Runs only if the environment variable `TRANSFERKIT_FLEET_FIGURES`
/// contains the number of waiting sessions. Prints the figures.
@Suite(.serialized, .enabled(if: ProcessInfo.processInfo.environment["TRANSFERKIT_FLEET_FIGURES"] != nil)) struct FleetFigures {
    private static let count = ProcessInfo.processInfo.environment["TRANSFERKIT_FLEET_FIGURES"].flatMap { Int($0) }.map { max($0, 2) } ?? 0

    /// A server that writes each commit to the disk, unlike the server of the other tests.
    private static func durableServer() throws -> PostgresServer { try PostgresServer(options: ["-c", "fsync=on"]) }

    /// Creates a fleet. The first half of its waiting sessions belongs to the account `full`, whose only slot is in use, and the second half to the
    /// account `studio`.
    private func makeFilledFleet() async throws -> FleetFixture {
        let fleet = try await FleetFixture(server: Self.durableServer(), hasLongLeases: false)
        var account = Account("full", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/")])
        account.maxConcurrentSessions = 1
        try await fleet.fleet.save(account)
        let member = try await fleet.join("holder", slots: 1)
        try await fleet.add(1, account: "full")
        _ = try await fleet.store.take(for: member)
        let draft = try String(decoding: JSONEncoder().encode(FleetFixture.draft("s")), as: UTF8.self)
        // A connection limits a statement to 7 s, so add the sessions in several statements.
        let batch = 50_000
        for (account, start) in [("full", 0), ("studio", Self.count / 2)] {
            for offset in stride(from: 0, to: Self.count / 2, by: batch) {
                try await fleet.query(
                    """
                    WITH added AS (
                        INSERT INTO session(id, position, account, place, state, statistics)
                        SELECT gen_random_uuid(), (n + $2::bigint) * 1048576, $1, 'anywhere', 'waiting',
                            (SELECT statistics FROM session LIMIT 1) FROM generate_series(2, $4::bigint + 1) AS n
                        RETURNING id)
                    INSERT INTO content(session, draft) SELECT id, $3 FROM added
                    """, [account, "\(start + offset)", draft, "\(min(batch, Self.count / 2 - offset))"])
            }
        }
        try await fleet.query("UPDATE fleet SET sessions = (SELECT count(*) FROM session)")
        try await fleet.query("ANALYZE session")
        return fleet
    }

    private func rate(_ count: Int, _ duration: Duration) -> Int {
        let seconds = Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
        return Int(Double(count) / seconds)
    }

    @Test func `sessions taken and ended per second`() async throws {
        let fleet = try await makeFilledFleet()
        for count in [1, 4, 16] {
            let perMember = 800 / count
            let stores = try (0..<count).map { _ in FleetStore(try PostgresURL(fleet.url)) }
            let members = (0..<count).map { FleetMemberDescription(name: "m\($0)", identity: UUID().uuidString, slots: 1) }
            for (store, member) in zip(stores, members) { try await store.join(member) }
            let clock = ContinuousClock()
            let duration = try await clock.measure {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (store, member) in zip(stores, members) {
                        group.addTask {
                            for _ in 0..<perMember {
                                let lease = try #require(try await store.take(for: member).first)
                                let isValid = try await store.locked {
                                    try $0.finish(lease.reference, error: nil, statistics: SessionStatistics(files: 1))
                                }
                                #expect(isValid)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            print("Figures: \(count) members: \(rate(perMember * count, duration)) sessions taken and ended per second")
            for (store, member) in zip(stores, members) {
                try await store.leave(member)
                await store.connection.close()
            }
        }
    }

    /// The times from the call of `run` until the member's queue has stopped the running session, and until the other session runs.
    @Test func `time until run interrupts another session`() async throws {
        let fixture = try await MemberFixture(database: Self.durableServer())
        fixture.server.stopContent(at: 1_000_000)
        let member = try await fixture.member("a")
        var (interruptions, starts): ([Duration], [Duration]) = ([], [])
        try await fixture.run([member]) {
            for round in 0..<20 {
                let victim = try await fixture.add("victim\(round)", sizes: [4_000_000])
                try await fixture.waitForBytes(1_000_000, of: "victim\(round)-0")
                let urgent = try await fixture.add("urgent\(round)", sizes: [4_000_000])
                let begin = ContinuousClock.now
                try await fixture.fleet.fleet.run(urgent)
                while try await member.localState(of: victim) == .running { await Task.yield() }
                interruptions.append(.now - begin)
                while try await member.localState(of: urgent) != .running { await Task.yield() }
                starts.append(.now - begin)
                for id in [urgent, victim] { try await fixture.fleet.fleet.remove(id, isForced: true) }
                for id in [urgent, victim] { try await member.waitUntilLeft(id) }
            }
        }
        for (name, times) in [("interrupted", interruptions.sorted()), ("replaced", starts.sorted())] {
            print("Figures: a session is \(name) after \(times[times.count / 2]) (median), \(times[times.count - 1]) (maximum)")
        }
    }

    /// Calls the closure several times for each member, for all members at the same time. Prints the number of calls per second.
    ///
    /// - Parameter body: Receives the index of a member.
    private func measure(
        _ name: String, callsPerMember count: Int, of members: [(store: FleetStore, member: FleetMemberDescription)],
        _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        let duration = try await ContinuousClock().measure {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in members.indices {
                    group.addTask { for _ in 0..<count { try await body(index) } }
                }
                try await group.waitForAll()
            }
        }
        print("Figures: \(name): \(rate(count * members.count, duration)) per second")
    }

    @Test func `heartbeats, takes of idle members, and commands`() async throws {
        let fleet = try await makeFilledFleet()
        let members = try (0..<16).map {
            (try FleetStore(PostgresURL(fleet.url)), FleetMemberDescription(name: "m\($0)", identity: UUID().uuidString, slots: 4))
        }
        var leases: [[FleetLease]] = []
        for (store, member) in members {
            try await store.join(member)
            leases.append(try await store.take(for: member))
        }
        let taken = leases
        try await measure("heartbeats of members with 4 sessions", callsPerMember: 50, of: members) {
            let response = try await members[$0].0.renew(taken[$0].map { ($0.reference, SessionStatistics()) }, of: members[$0].1)
            try #require(response.requests.count == 4)
        }
        try await fleet.fleet.setMaxConcurrentSessions(1, account: "studio")
        let idle = try (0..<16).map {
            (try FleetStore(PostgresURL(fleet.url)), FleetMemberDescription(name: "i\($0)", identity: UUID().uuidString, slots: 1))
        }
        for (store, member) in idle { try await store.join(member) }
        try await measure("takes of members with a free slot and no session", callsPerMember: 25, of: idle) {
            try #require(try await idle[$0].0.take(for: idle[$0].1).isEmpty)
        }
        for (store, _) in members + idle { await store.connection.close() }
        try await fleet.fleet.setMaxConcurrentSessions(nil, account: "studio")
        let ids = try await fleet.add(20)
        let queue = fleet.fleet
        let commands: [(String, (SessionID) async throws -> Void)] = [
            ("one session is added", { _ in try await fleet.add([FleetFixture.draft("x")]) }),
            ("one session is run now", { try await queue.run($0) }),
            ("the last session is moved to the front", { try await queue.move($0, to: .front) }),
            ("the first session is moved to the end", { try await queue.move($0, to: .end) }),
            ("the last session is removed", { try await queue.remove($0) }),
            ("the first 100 sessions are listed", { _ in _ = try await queue.sessions(0..<100) }),
            ("the state of the queue is read", { _ in _ = try await queue.status() }),
        ]
        for (name, command) in commands {
            let duration = try await ContinuousClock().measure { for id in ids { try await command(id) } }
            print("Figures: \(name) in \(duration / ids.count)")
        }
        let sizes = try await fleet.query(
            """
            SELECT sum(pg_total_relation_size(oid)) FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'transferq'::regnamespace AND relname IN ('session', 'content')
            """)
        print("Figures: \(try sizes[0].integer(0) / Int64(Self.count)) bytes per session")
    }
}
