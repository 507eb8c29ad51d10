import ScriptedHTTP
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// Random operations in a fleet with three simulated members, which also die at random. After each step, the test
/// compares the fleet with ``FleetModel``.
@Suite struct ModelTests {
    @Test(arguments: [UInt64](1...8)) func `a fleet agrees with the model after random steps`(seed: UInt64) async throws {
        var numbers = SplitMix(seed: seed)
        let fleet = try await FleetFixture()
        var model = FleetModel()
        var members: [FleetMemberDescription] = []
        for (name, slots) in [("a", 1), ("b", 2), ("c", 2)] {
            members.append(try await fleet.join(name, slots: slots))
            model.slots[name] = slots
        }
        var leases: [SessionID: FleetLease] = [:]
        for step in 0..<100 {
            let comment = "seed \(seed), step \(step)"
            switch Int.random(in: 0..<20, using: &numbers) {
            case 0..<3:
                let ids = try await fleet.add(Int.random(in: 1...3, using: &numbers))
                model.sessions += ids.map { FleetModel.Session(id: $0) }
            case 3..<8:
                let member = try #require(members.randomElement(using: &numbers))
                let taken = try await fleet.store.take(for: member)
                let expected = model.take(member.name)
                try #require(taken.map(\.id) == expected, "\(comment): take")
                for lease in taken { leases[lease.id] = lease }
            case 8..<11:
                guard let id = model.sessions.filter({ $0.owner != nil }).randomElement(using: &numbers)?.id, let lease = leases[id] else {
                    continue
                }
                let isStopping = model[id]?.state != .running && model[id]?.state != .paused
                if isStopping || Bool.random(using: &numbers) {
                    try #require(try await fleet.giveBack(lease, isInterrupted: !isStopping), "\(comment)")
                    model.giveBack(id, isInterrupted: !isStopping)
                } else {
                    let error = Bool.random(using: &numbers) ? nil : TransferError(.permanent, .rejected, "no")
                    try #require(try await fleet.finish(lease, error: error), "\(comment)")
                    model.finish(id, isCompleted: error == nil)
                }
            case 11:
                let member = try #require(members.randomElement(using: &numbers))
                // The next process of the same member joins, which ends the leases of the process that died.
                try await fleet.store.join(member)
                model.kill(member.name)
            case 12:
                let limit = Bool.random(using: &numbers) ? nil : Int.random(in: 1...5, using: &numbers)
                if Bool.random(using: &numbers) {
                    try await fleet.fleet.setMaxConcurrentSessions(limit, account: nil)
                    model.fleetLimit = limit
                } else {
                    try await fleet.fleet.setMaxConcurrentSessions(limit, account: "studio")
                    model.accountLimit = limit
                }
            default:
                let operations: [SessionOperation] = [
                    .run(), .run(), .run(), .runNext, .pause, .resume, .hold, .release, .cancel(), .retry, .remove(), .move(to: .front),
                    .move(to: .end),
                ]
                guard let id = model.visible.randomElement(using: &numbers)?.id, let operation = operations.randomElement(using: &numbers)
                else {
                    continue
                }
                var isAccepted = true
                do {
                    try await fleet.fleet.apply(operation, to: .id(id))
                } catch is QueueError {
                    isAccepted = false
                }
                let isValid = model.apply(operation, id)
                try #require(isValid == isAccepted, "\(comment): \(operation)")
            }
            try await compare(fleet, model, comment)
        }
    }

    private func compare(_ fleet: FleetFixture, _ model: FleetModel, _ comment: String) async throws {
        let rows = try await fleet.query(
            "SELECT id, state, owner, displaced_by, lane, is_removed FROM session ORDER BY position, id"
        ).map { row in
            [try row.text(0), try row.text(1), try row.optional(2) ?? "-", try row.optional(3) ?? "-"]
                + (try row.text(1) == "waiting" ? [try row.text(4)] : [])
        }
        let expected = model.sessions.filter { !$0.isRemoved }.map { session in
            ["\(session.id)", session.state.rawValue, session.owner ?? "-", session.displacedBy.map { "\($0)" } ?? "-"]
                + (session.state == .waiting ? ["\(session.startPriority)"] : [])
        }
        let removed = Set(model.sessions.filter(\.isRemoved).map { "\($0.id)" })
        try #require(rows.filter { !removed.contains($0[0]) } == expected, "\(comment)")
        let count = try await fleet.query("SELECT sessions FROM fleet")[0].integer(0)
        #expect(count == Int64(expected.count), "\(comment)")
        let owned = rows.count { $0[2] != "-" }
        #expect(owned == model.sessions.count { $0.owner != nil }, "\(comment)")
    }
}
