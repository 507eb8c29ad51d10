import Foundation
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// The fleet gives the slot of a running session to a session for which `run` was called. The interrupted session resumes later.
@Suite struct DisplacementTests {
    @Test func `the last running session gives way, and resumes when the other session ends`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(4)
        let (first, second) = (try await fleet.join("first"), try await fleet.join("second"))
        let a = try #require(try await fleet.store.take(for: first).first)
        let b = try #require(try await fleet.store.take(for: second).first)
        try await fleet.fleet.run(ids[3])
        #expect(try await fleet.requests(first, a) == [.run])
        #expect(try await fleet.requests(second, b) == [.giveBack])
        #expect(try await fleet.store.take(for: first).isEmpty)
        #expect(try await fleet.giveBack(b))
        #expect(try await fleet.fleet.status(of: ids[1]).why == .displaced(by: ids[3]))
        let urgent = try #require(try await fleet.store.take(for: second).first)
        #expect(urgent.id == ids[3])
        // The displaced session does not take a free slot of another member. It waits for the session that displaced it, as in a local queue.
        #expect(try await fleet.finish(a))
        #expect(try await fleet.store.take(for: first).map(\.id) == [ids[2]])
        #expect(try await fleet.finish(urgent))
        #expect(try await fleet.store.take(for: second).map(\.id) == [ids[1]])
    }

    @Test func `no session is displaced if a slot is free, or if the new session can't run anyway`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let elsewhere = try await fleet.add(1, place: .member("gone"))
        let member = try await fleet.join("m", slots: 2)
        let lease = try #require(try await fleet.store.take(for: member, limit: 1).first)
        try await fleet.fleet.run(ids[1])
        #expect(try await fleet.requests(member, lease) == [.run])
        try await fleet.fleet.run(elsewhere[0])
        #expect(try await fleet.requests(member, lease) == [.run])
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[1]])
        try await fleet.fleet.run(elsewhere[0])
        #expect(try await fleet.requests(member, lease) == [.run])
    }

    @Test func `only a member that may run the session gives way`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let fast = try await fleet.add(1, place: .label("fast"))
        let (first, second) = (try await fleet.join("first", labels: ["fast"]), try await fleet.join("second"))
        let a = try #require(try await fleet.store.take(for: first).first)
        let b = try #require(try await fleet.store.take(for: second).first)
        #expect([a.id, b.id] == [ids[0], ids[1]])
        try await fleet.fleet.run(fast[0])
        #expect(try await fleet.requests(first, a) == [.giveBack])
        #expect(try await fleet.requests(second, b) == [.run])
    }

    @Test func `the limit of the account decides which session gives way`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.fleet.save(
            Account("other", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/o/")], maxConcurrentSessions: 1))
        let other = try await fleet.add(2, account: "other")
        let studio = try await fleet.add(1)
        let member = try await fleet.join("m", slots: 5)
        let leases = try await fleet.store.take(for: member)
        #expect(leases.map(\.id) == [other[0], studio[0]])
        try await fleet.fleet.run(other[1])
        #expect(try await fleet.requests(member, leases[0], leases[1]) == [.giveBack, .run])
    }

    @Test func `nested displacements unwind in order, even if members die in between`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        var member = try await fleet.join("m0")
        let a = try #require(try await fleet.store.take(for: member).first)
        try await fleet.fleet.run(ids[1])
        #expect(try await fleet.giveBack(a))
        let b = try #require(try await fleet.store.take(for: member).first)
        #expect(b.id == ids[1])
        try await fleet.fleet.run(ids[2])
        // The member dies before it has given the session back.
        try await fleet.endLeases(of: member)
        try await fleet.fleet.evict("m0")
        member = try await fleet.join("m1")
        let c = try #require(try await fleet.store.take(for: member).first)
        #expect(c.id == ids[2])
        // The member that runs this session dies, too. The session starts next again, so the displaced sessions keep waiting.
        try await fleet.endLeases(of: member)
        try await fleet.fleet.evict("m1")
        member = try await fleet.join("m2")
        let again = try #require(try await fleet.store.take(for: member).first)
        #expect(again.id == ids[2])
        #expect(try await fleet.fleet.status(of: ids[0]).why == .displaced(by: ids[1]))
        #expect(try await fleet.fleet.status(of: ids[1]).why == .displaced(by: ids[2]))
        #expect(try await fleet.finish(again))
        let inner = try #require(try await fleet.store.take(for: member).first)
        #expect(inner.id == ids[1])
        #expect(try await fleet.store.take(for: member).isEmpty)
        #expect(try await fleet.finish(inner))
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[0]])
    }

    @Test func `a displaced session does not wait for a session that no member can run`() async throws {
        let error = TransferError(.credentials, .credentialsUnavailable, "There is no token.")
        for ending in ["gone", "refused", "yield"] {
            let fleet = try await FleetFixture()
            try await fleet.fleet.save(Account("other", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/o/")]))
            let victim = try await fleet.add(1)[0]
            let urgent = try await fleet.add(1, account: "other", place: .member("b"))[0]
            let other = try await fleet.join("b")
            let lease = try #require(try await fleet.store.take(for: other).first)
            try await fleet.fleet.run(urgent)
            #expect(try await fleet.giveBack(lease))
            #expect(try await fleet.fleet.status(of: victim).why == .displaced(by: urgent))
            let member = try await fleet.join("a")
            #expect(try await fleet.store.take(for: member).isEmpty)
            switch ending {
            case "gone": try await fleet.fleet.evict("b")
            case "refused": try await fleet.store.refuse("other", error: error, by: "b")
            default: try await fleet.fleet.apply(.yield, to: .id(urgent))
            }
            #expect(try await fleet.store.take(for: member).map(\.id) == [victim], "\(ending)")
        }
    }

    @Test func `after hold and run, no session is displaced until the first member has given the session back`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let (first, second) = (try await fleet.join("first"), try await fleet.join("second"))
        let a = try #require(try await fleet.store.take(for: first).first)
        let b = try #require(try await fleet.store.take(for: second).first)
        try await fleet.fleet.hold(ids[0])
        try await fleet.fleet.setMaxConcurrentSessions(1, account: nil)
        try await fleet.fleet.run(ids[0])
        #expect(try await fleet.requests(first, a) == [.giveBack])
        #expect(try await fleet.requests(second, b) == [.run])
        #expect(try await fleet.giveBack(a))
        #expect(try await fleet.requests(second, b) == [.giveBack])
        #expect(try await fleet.giveBack(b))
        #expect(try await fleet.store.take(for: second).map(\.id) == [ids[0]])
    }

    @Test func `a displacing session that is cancelled, held or removed returns the slot`() async throws {
        for operation in [SessionOperation.cancel(), .hold, .remove()] {
            let fleet = try await FleetFixture()
            let ids = try await fleet.add(2)
            let member = try await fleet.join("m")
            let a = try #require(try await fleet.store.take(for: member).first)
            try await fleet.fleet.run(ids[1])
            #expect(try await fleet.giveBack(a))
            let b = try #require(try await fleet.store.take(for: member).first)
            try await fleet.fleet.apply(operation, to: .id(ids[1]))
            #expect(try await fleet.requests(member, b) == [.giveBack])
            #expect(try await fleet.giveBack(b))
            #expect(try await fleet.store.take(for: member).map(\.id) == [ids[0]], "\(operation)")
        }
    }
}
