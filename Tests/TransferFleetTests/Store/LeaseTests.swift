import Foundation
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// Leases, the rejection of writes after a lease has ended (fencing), and the takeover of sessions whose member has died.
@Suite struct LeaseTests {
    private static let endpoint = Endpoint(transport: "tus", address: "http://127.0.0.1:9/")

    private static func checkpoint(_ confirmed: Int64, generation: Int64 = 1) -> FileEvent {
        .checkpoint(Checkpoint(data: Data("at \(confirmed)".utf8), confirmed: confirmed), endpoint: endpoint, generation: generation, nil)
    }

    private func record(_ events: [(Int64, FileEvent)], _ lease: FleetLease, of member: String, in fleet: FleetFixture) async throws -> Bool
    {
        try await fleet.store.record(events.map { (lease.reference, FileProgress(position: $0, event: $1)) }, of: member).contains(lease.id)
    }

    @Test func `another member continues from the recorded progress once the lease has ended`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add([FleetFixture.draft("a", files: 3)])
        let (first, second) = (try await fleet.join("first"), try await fleet.join("second"))
        let lease = try #require(try await fleet.store.take(for: first).first)
        #expect(lease.draft.progress == [])
        let receipt = TransferReceipt(bytes: 1_000)
        #expect(
            try await record(
                [
                    (0, Self.checkpoint(400)), (0, .completed(receipt, endpoint: Self.endpoint)), (1, Self.checkpoint(100)),
                    (1, Self.checkpoint(700)),
                ],
                lease, of: "first", in: fleet))
        #expect(try await fleet.store.take(for: second).isEmpty)
        try await fleet.endLeases(of: first)
        let rescued = try #require(try await fleet.store.take(for: second).first)
        #expect(rescued.id == ids[0] && rescued.epoch == lease.epoch + 1)
        #expect(
            rescued.draft.progress == [
                FileProgress(position: 0, event: .size(1_000)),
                FileProgress(position: 0, event: .completed(receipt, endpoint: Self.endpoint)),
                FileProgress(position: 1, event: Self.checkpoint(700)),
            ])
    }

    @Test func `a restart invalidates earlier checkpoints`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.add(1)
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        let reason = TransferError(.resumeLost, .invalidResponse, "The upload is gone.")
        #expect(try await record([(0, Self.checkpoint(400)), (0, .restarted(generation: 2, reason))], lease, of: "m", in: fleet))
        try await fleet.endLeases(of: member)
        let again = try #require(try await fleet.store.take(for: member).first)
        #expect(again.draft.progress == [FileProgress(position: 0, event: .restarted(generation: 2, reason))])
        #expect(try await record([(0, Self.checkpoint(10, generation: 2))], again, of: "m", in: fleet))
        try await fleet.endLeases(of: member)
        let last = try #require(try await fleet.store.take(for: member).first)
        #expect(last.draft.progress?.count == 2)
    }

    @Test func `an endpoint's address can be longer than the maximum key of an index`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.add(1)
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        // PostgreSQL compresses keys, so the address must not contain repetitions.
        let path = (0..<200).map { _ in UUID().uuidString }.joined(separator: "/")
        let events = (0..<2).map { number in
            FileEvent.checkpoint(
                Checkpoint(data: Data(), confirmed: Int64(number) + 1),
                endpoint: Endpoint(transport: "tus", address: "http://127.0.0.1:9/\(path)/\(number)"), generation: 1, nil)
        }
        #expect(try await record(events.map { (0, $0) }, lease, of: "m", in: fleet))
        #expect(try await record([(0, events[1])], lease, of: "m", in: fleet))
        let stored = try await fleet.store.progress(of: lease.id).map(\.event)
        #expect(stored.count == 2 && events.allSatisfy { stored.contains($0) })
    }

    @Test func `a retry removes a failure even if its message contains a zero byte`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add([FleetFixture.draft("a", files: 2)])
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        let error = TransferError(.permanent, .rejected, "a\u{0}b")
        let completed = FileEvent.completed(TransferReceipt(bytes: 1_000), endpoint: Self.endpoint)
        #expect(try await record([(0, .failed(error)), (1, completed)], lease, of: "m", in: fleet))
        #expect(try await fleet.finish(lease, error: error))
        try await fleet.fleet.retry(ids[0])
        #expect(try await fleet.store.progress(of: ids[0]).map(\.position) == [1, 1])
    }

    /// A member whose lease ended without a report may still have its part files open. A member that has given its session back has
    /// closed its part files.
    @Test func `if a lease ends before the session is given back, the next member uses other part files`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.add(1)
        let (first, second) = (try await fleet.join("first"), try await fleet.join("second"))
        let lease = try #require(try await fleet.store.take(for: first).first)
        #expect(lease.draft.options.partEpoch == nil)
        #expect(try await fleet.giveBack(lease))
        #expect(try await fleet.store.take(for: second).first?.draft.options.partEpoch == nil)
        try await fleet.endLeases(of: second)
        let rescued = try #require(try await fleet.store.take(for: first).first)
        #expect(rescued.epoch == 3 && rescued.draft.options.partEpoch == 3)
        // A second process of this member joins, so the first process has ended.
        try await fleet.store.join(first)
        let again = try #require(try await fleet.store.take(for: first).first)
        #expect(again.epoch == 4 && again.draft.options.partEpoch == 3)
        try await fleet.endLeases(of: first)
        #expect(try await fleet.store.take(for: second).first?.draft.options.partEpoch == 5)
    }

    @Test func `a member whose lease has ended writes nothing`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(1)
        let (first, second) = (try await fleet.join("first"), try await fleet.join("second"))
        let stale = try #require(try await fleet.store.take(for: first).first)
        try await fleet.endLeases(of: first)
        // No member has taken the session yet, but the lease has ended.
        #expect(try await fleet.requests(first, stale) == [nil])
        #expect(try await !record([(0, Self.checkpoint(1))], stale, of: "first", in: fleet))
        #expect(try await !fleet.finish(stale))
        let lease = try #require(try await fleet.store.take(for: second).first)
        #expect(try await fleet.requests(first, stale) == [nil])
        #expect(try await !record([(0, Self.checkpoint(1))], stale, of: "first", in: fleet))
        #expect(try await !fleet.finish(stale))
        #expect(try await !fleet.giveBack(stale))
        #expect(try await fleet.state(of: ids[0]) == .running)
        #expect(try await fleet.requests(second, lease) == [.run])
        #expect(try await fleet.finish(lease))
        #expect(try await fleet.query("SELECT count(*) FROM progress")[0].integer(0) == 0)
    }

    @Test func `a heartbeat renews all leases of a member`() async throws {
        let fleet = try await FleetFixture(hasLongLeases: false)
        try await fleet.add(3)
        let member = try await fleet.join("m", slots: 3)
        let leases = try await fleet.store.take(for: member)
        try await fleet.query("UPDATE session SET lease_until = clock_timestamp() + interval '1 s'")
        #expect(try await fleet.requests(member, leases[0], leases[1], leases[2]) == [.run, .run, .run])
        let rest = try await fleet.query("SELECT count(*) FROM session WHERE lease_until > clock_timestamp() + interval '10 s'")
        #expect(try rest[0].integer(0) == 3)
    }

    @Test func `an interrupted session starts before other sessions, and the interruption is not a failed attempt`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        let (first, second) = (try await fleet.join("first", slots: 2), try await fleet.join("second", slots: 3))
        _ = try await fleet.store.take(for: first)
        try await fleet.fleet.move(ids[2], to: .front)
        try await fleet.endLeases(of: first)
        #expect(try await fleet.store.take(for: second).map(\.id) == ids)
        #expect(try await fleet.fleet.status(of: ids[0]).error == nil)
    }

    @Test func `a restarted member immediately continues its own sessions`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(1)
        let member = try await fleet.join("m")
        _ = try await fleet.store.take(for: member)
        try await fleet.store.join(member)
        #expect(try await fleet.store.take(for: member).map(\.id) == ids)
        await #expect(throws: QueueError.self) { try await fleet.join("m") }
    }

    @Test func `a removed member can't renew leases or take sessions, and its sessions continue after its leases end`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let (first, second) = (try await fleet.join("first"), try await fleet.join("second", slots: 2))
        let lease = try #require(try await fleet.store.take(for: first).first)
        try await fleet.fleet.evict("first")
        await #expect(throws: QueueError.self) { try await fleet.requests(first, lease) }
        await #expect(throws: QueueError.self) { try await fleet.store.take(for: first) }
        // The member may still be sending, so no other member takes its session before the lease has ended.
        #expect(try await fleet.store.take(for: second).map(\.id) == [ids[1]])
        try await fleet.endLeases(of: first)
        #expect(try await fleet.store.take(for: second).map(\.id) == [ids[0]])
        await #expect(throws: QueueError.self) { try await fleet.fleet.evict("first") }
    }

    @Test func `operations on a running session reach its member`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(4)
        let member = try await fleet.join("m", slots: 4)
        let leases = try await fleet.store.take(for: member)
        #expect(try await fleet.fleet.pause(ids[0]) == .paused)
        try await fleet.fleet.hold(ids[1])
        try await fleet.fleet.cancel(ids[2])
        try await fleet.fleet.remove(ids[3])
        let requests = try await fleet.requests(member, leases[0], leases[1], leases[2], leases[3])
        #expect(requests == [.pause, .giveBack, .giveBack, .giveBack])
        try await fleet.fleet.resume(ids[0])
        #expect(try await fleet.requests(member, leases[0]) == [.run])
        for lease in leases[1...] { #expect(try await fleet.giveBack(lease)) }
        #expect(try await fleet.fleet.sessions(in: .all).map(\.state) == [.running, .held, .cancelled])
        #expect(try await fleet.query("SELECT count(*) FROM session")[0].integer(0) == 3)
    }

    @Test func `a paused session of a dead member is held, and a removed session is deleted`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        let (first, second) = (try await fleet.join("first", slots: 3), try await fleet.join("second", slots: 3))
        _ = try await fleet.store.take(for: first)
        try await fleet.fleet.pause(ids[0])
        try await fleet.fleet.remove(ids[1])
        try await fleet.endLeases(of: first)
        #expect(try await fleet.store.take(for: second).map(\.id) == [ids[2]])
        #expect(try await fleet.fleet.sessions(in: .all).map(\.state) == [.held, .running])
    }

    @Test func `heartbeats change no index`() async throws {
        let fleet = try await FleetFixture(hasLongLeases: false)
        try await fleet.add(10)
        let member = try await fleet.join("m", slots: 10)
        let leases = try await fleet.store.take(for: member)
        let statement = "SELECT n_tup_upd - n_tup_hot_upd, n_tup_upd FROM pg_stat_xact_user_tables WHERE relid = 'session'::regclass"
        let figures = try await fleet.store.unlocked { link in
            func updates() throws -> [Int64] {
                let row = try #require(try link.query(statement).first)
                return [try row.integer(0), try row.integer(1)]
            }
            let before = try updates()
            for _ in 0..<20 {
                for lease in leases {
                    try link.query(
                        "UPDATE session SET lease_until = clock_timestamp() + interval '15 s', statistics = statistics WHERE id = $1",
                        ["\(lease.id)"])
                }
            }
            return zip(try updates(), before).map { $0 - $1 }
        }
        #expect(figures[1] == 200)
        // PostgreSQL moves a row to another page when the page has no more free space. Only such an update changes an
        // index, so most updates change none.
        #expect(figures[0] < 100)
    }
}
