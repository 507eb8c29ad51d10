import Foundation
import Testing
import TransferCore
import TransferFleet
import TransferKit

@Suite(.timeLimit(.minutes(2))) struct UpdateTests {
    @Test func `an update changes a waiting session`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.fleet.save(Account("other", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/")]))
        let ids = try await fleet.add(2)
        let later = Date(timeIntervalSinceNow: 3_600)
        try await fleet.fleet.update(
            ids[1],
            SessionUpdate(
                rateLimit: .bytesPerSecond(7), tags: ["a", "b"], account: "other", name: "Day one", notBefore: .set(later),
                dependency: .set(SessionDependency(ids[0]))))
        let status = try await fleet.fleet.status(of: ids[1])
        #expect((status.name, status.account, status.tags, status.rateLimit) == ("Day one", "other", ["a", "b"], 7))
        #expect(abs(try #require(status.notBefore).timeIntervalSince(later)) < 1 && status.dependency?.session == ids[0])
        #expect(try await fleet.fleet.sessions(in: .tag("b")).map(\.id) == [ids[1]])
        try await fleet.fleet.update(ids[1], SessionUpdate(tags: ["c"], notBefore: .remove, dependency: .remove))
        let cleared = try await fleet.fleet.status(of: ids[1])
        #expect(cleared.notBefore == nil && cleared.dependency == nil && cleared.tags == ["c"] && cleared.name == "Day one")
        let events = try await fleet.store.changes(after: 0, limit: 100).events.map(\.kind)
        #expect(events.count { $0 == .updated(ids[1]) } == 2)
    }

    /// A rejected update does not change the session's name.
    @Test func `invalid updates, and updates of a running session, are rejected`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        try await fleet.fleet.update(ids[1], SessionUpdate(dependency: .set(SessionDependency(ids[0]))))
        func refusal(_ id: SessionID, _ update: SessionUpdate) async throws -> QueueError.Code? {
            let before = try await fleet.fleet.status(of: id)
            let error = await #expect(throws: QueueError.self) { try await fleet.fleet.update(id, update) }
            #expect(try await fleet.fleet.status(of: id).name == before.name)
            return error?.code
        }
        #expect(try await refusal(ids[0], SessionUpdate(name: "x", dependency: .set(SessionDependency(ids[1])))) == .impossibleOrder)
        #expect(try await refusal(ids[0], SessionUpdate(name: "x", dependency: .set(SessionDependency(SessionID())))) == .noSuchSession)
        #expect(try await refusal(ids[0], SessionUpdate(account: "none", name: "x")) == .noSuchAccount)
        #expect(try await refusal(ids[0], SessionUpdate(rateLimit: .bytesPerSecond(0), name: "x")) == .invalidRequest)
        let member = try await fleet.join("m", slots: 1)
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[0]])
        #expect(try await refusal(ids[0], SessionUpdate(name: "x")) == .invalidTransition)
        // An update of a group skips the running session.
        #expect(try await fleet.fleet.apply(.update(SessionUpdate(name: "all")), to: .all) == [ids[1], ids[2]])
    }
}
