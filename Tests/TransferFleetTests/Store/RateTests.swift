import Foundation
import Testing
import TransferCore
import TransferFleet
import TransferKit

@Suite struct RateTests {
    private static let unlimited: Int64? = nil

    private let fleet: FleetFixture

    init() async throws {
        fleet = try await FleetFixture()
    }

    /// Sends a heartbeat, and returns the member's shares.
    private func shares(_ member: FleetMemberDescription, _ leases: FleetLease...) async throws -> RateShares {
        try await fleet.store.renew(leases.map { ($0.reference, nil) }, of: member).rates
    }

    private func take(_ member: FleetMemberDescription) async throws -> FleetLease {
        try #require(try await fleet.store.take(for: member, limit: 1).first)
    }

    @Test func `each heartbeat divides the limits among the members that use them`() async throws {
        try await fleet.fleet.setRateLimit(10, account: nil)
        var other = Account("other", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/")])
        other.rateLimit = 6
        try await fleet.fleet.save(other)
        let (a, b, c) = (try await fleet.join("a", slots: 3), try await fleet.join("b"), try await fleet.join("c"))
        let ids = try await fleet.add(3)
        let first = try await take(a)
        #expect(first.rates.fleet == 10 && first.rates.accounts == ["studio": Self.unlimited])
        let second = try await take(b)
        #expect(second.rates.fleet == 5)
        #expect(try await shares(a, first).fleet == 5)
        let third = try await take(c)
        // The first members get the remainder, so that the shares add up to the limit.
        #expect(try await shares(a, first).fleet == 4)
        #expect(try await shares(b, second).fleet == 3)
        #expect(try await shares(c, third).fleet == 3)
        // Another session of a member does not change its share.
        try await fleet.add(1, account: "other")
        let fourth = try await take(a)
        #expect(fourth.rates.fleet == 4 && fourth.rates.accounts == ["studio": Self.unlimited, "other": 6])
        try await fleet.fleet.setRateLimit(7, account: "studio")
        #expect(try await shares(a, first, fourth).accounts == ["studio": 3, "other": 6])
        #expect(try await shares(b, second).accounts == ["studio": 2])
        #expect(try await shares(c, third).accounts == ["studio": 2])
        // A member with only paused sessions does not reduce other members' shares. Its own share is the share that it will have after resuming.
        _ = try await fleet.fleet.pause(ids[1])
        #expect(try await shares(a, first, fourth).fleet == 5)
        #expect(try await shares(b, second).fleet == 3)
        #expect(try await shares(c, third).accounts == ["studio": 3])
        // The share of a dead member is divided when its leases end.
        try await fleet.endLeases(of: c)
        #expect(try await shares(a, first, fourth) == RateShares(fleet: 10, accounts: ["studio": 7, "other": 6]))
        try await fleet.fleet.resume(ids[1])
        #expect(try await shares(a, first, fourth) == RateShares(fleet: 5, accounts: ["studio": 4, "other": 6]))
        #expect(try await shares(b, second) == RateShares(fleet: 5, accounts: ["studio": 3]))
        // A share is at least 1 B/s, so that each member can send.
        try await fleet.fleet.setRateLimit(1, account: nil)
        #expect(try await shares(a, first, fourth).fleet == 1)
        #expect(try await shares(b, second).fleet == 1)
        try await fleet.fleet.setRateLimit(nil, account: nil)
        try await fleet.fleet.setRateLimit(nil, account: "studio")
        #expect(try await shares(b, second) == RateShares(fleet: nil, accounts: ["studio": Self.unlimited]))
    }

    @Test func `limits are reported, and invalid limits are rejected`() async throws {
        let queue = fleet.fleet
        try await queue.setRateLimit(1_000, account: nil)
        try await queue.setRateLimit(500, account: "studio")
        #expect(try await queue.status().rateLimit == 1_000)
        #expect(try await queue.status().currentRateLimit == 1_000)
        #expect(try await queue.account("studio")?.account.rateLimit == 500)
        #expect(try await queue.account("studio")?.currentRateLimit == 500)
        let refused = await #expect(throws: QueueError.self) { try await queue.setRateLimit(0, account: nil) }
        #expect(refused?.code == .invalidRequest)
        let zero = await #expect(throws: (any Error).self) { try await queue.setRateLimit(0, account: "studio") }
        #expect(zero != nil)
        let missing = await #expect(throws: QueueError.self) { try await queue.setRateLimit(1, account: "missing") }
        #expect(missing?.code == .noSuchAccount)
        // A fleet rejects timetables, because a timetable depends on the local time of each member.
        var account = try #require(try await queue.account("studio")).account
        account.timetable = BandwidthTimetable([BandwidthTimetable.Rule(rateLimit: 1)])
        let timetable = await #expect(throws: QueueError.self) { try await queue.save(account) }
        #expect(timetable?.message.contains("--rate") == true)
        #expect(try await queue.account("studio")?.account.rateLimit == 500)
    }

    @Test func `a migration keeps the limits of accounts`() async throws {
        var limited = Account("limited", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/")])
        limited.rateLimit = 9
        try await fleet.fleet.save(limited)
        try await fleet.query("UPDATE account SET definition = 'unreadable' WHERE name = 'studio'")
        try await fleet.revertTables(to: 2)
        #expect(try await !Fleet.create(at: fleet.url))
        try await fleet.add(1, account: "limited")
        let member = try await fleet.join("a")
        #expect(try await take(member).rates.accounts == ["limited": 9])
    }
}
