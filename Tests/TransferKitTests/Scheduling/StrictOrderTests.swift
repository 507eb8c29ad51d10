import Foundation
import Testing
import TransferCore
import TransferKit

/// Strict queues, dependencies and deduplication keys.
@Suite struct StrictOrderTests {
    @Test func nothingPassesWhatIsNotFinished() throws {
        var queue = try Rehearsal(limit: 3, isStrict: true)
        try queue.add("A B C")
        #expect(queue.line == "A=running B=waiting C=waiting")
        try queue.end("A", .backoff(.seconds(30), .broken))
        #expect(queue.line == "A=waiting B=waiting C=waiting")
        #expect(queue.why("B") == .strictOrder(behind: SessionID(named: "A")))
        try queue.call(.cancel(), "A")
        #expect(queue.line == "A=cancelled B=running C=waiting")
        try queue.end("B", .finished(failure: .broken, itemsSeen: 1))
        #expect(queue.line == "A=cancelled B=failed C=running")
    }

    @Test func onlyRunOverridesTheList() throws {
        var queue = try Rehearsal(isStrict: true)
        try queue.add("A B C")
        try queue.call(.runNext, "C")
        try queue.end("A")
        #expect(queue.line == "A=completed B=running C=waiting")
        try queue.call(.run(), "C")
        try queue.letGo("B")
        #expect(queue.line == "A=completed B=waiting C=running")
        try queue.end("C")
        #expect(queue.line == "A=completed B=running C=completed")
    }

    @Test func aStoppedOneGoesOnAfterTheDelay() throws {
        var queue = try Rehearsal(isStrict: true)
        try queue.add("A B")
        try queue.call(.yield, "A")
        try queue.letGo("A")
        #expect(queue.line == "A=waiting B=waiting")
        try queue.pass(seconds: 5)
        #expect(queue.line == "A=running B=waiting")
    }

    /// A later session of a group may depend on an earlier one: the check covers the whole group.
    @Test func aMoveInPartsIsCheckedAsAWhole() throws {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"], ordering: .strict))
        _ = try scheduler.perform(.saveAccount(.memory("a")))
        var drafts = (0..<4).map { _ in SessionDraft.draft() }
        drafts[1].dependency = .after(drafts[0].id)
        drafts[3].dependency = .after(drafts[1].id)
        let ids = drafts.map(\.id)
        _ = try scheduler.perform(.enqueue(drafts))
        let refused = #expect(throws: QueueError.self) { try scheduler.check(.move(to: .end), onAll: [ids[0], ids[1]]) }
        #expect(refused?.code == .impossibleOrder)
        let (sessions, first) = try scheduler.check(.move(to: .index(1)), onAll: [ids[1], ids[0]])
        #expect(sessions == [ids[0], ids[1]])
        _ = try scheduler.perform(.perform(first, .more([ids[0]], of: .all, mark: 0)))
        _ = try scheduler.perform(.perform(.move(to: .after(ids[0])), .more([ids[1]], of: .all, mark: 0)))
        #expect(scheduler.sessionIndex.order.compactMap { scheduler.sessionIndex[$0]?.id } == [ids[2], ids[0], ids[1], ids[3]])
    }

    @Test func whatDoesNotExistIsToldBeforeWhatWaitsForItself() throws {
        var queue = try Rehearsal()
        var drafts = ["A", "B"].map { SessionDraft.draft(id: SessionID(named: $0)) }
        drafts[0].dependency = SessionDependency(drafts[0].id)
        #expect(try queue.tell(.enqueue(drafts)) == .impossibleOrder)
        drafts[1].dependency = SessionDependency(SessionID(named: "nobody"))
        #expect(try queue.tell(.enqueue(drafts)) == .noSuchSession)
    }

    @Test func nobodyWaitsForOneBehind() throws {
        var queue = try Rehearsal(isStrict: true)
        try queue.add("A B")
        #expect(try queue.add("C", after: "B", at: 0) == .impossibleOrder)
        #expect(try queue.add("C", after: "B") == nil)
        #expect(try queue.call(.move(to: .front), "C") == .impossibleOrder)
        #expect(try queue.call(.move(to: .end), "B") == .impossibleOrder)
        #expect(queue.line == "A=running B=waiting C=waiting")
    }

    @Test func aDependentWaitsForSuccessOrForAnyEnd() throws {
        var queue = try Rehearsal(limit: 3)
        try queue.add("A")
        #expect(try queue.add("B", after: "A") == nil)
        #expect(try queue.add("C", after: "A", acceptsAnyEnd: true) == nil)
        #expect(queue.line == "A=running B=waiting C=waiting")
        try queue.end("A", .finished(failure: .broken, itemsSeen: 1))
        #expect(queue.line == "A=failed B=waiting C=running")
        #expect(queue.why("B") == .after(SessionID(named: "A"), .failed))
        #expect(try queue.call(.remove(), "A") == .hasDependents)
        try queue.call(.retry, "A")
        try queue.end("A")
        #expect(queue.line == "A=completed B=running C=running")
        #expect(try queue.call(.remove(), "A") == nil)
    }

    @Test func aKeyThatSomeoneElseHasByNowIsNotTakenBack() throws {
        var queue = try Rehearsal()
        var draft = SessionDraft.draft(id: SessionID(named: "A"))
        draft.deduplicationKey = "key"
        try queue.tell(.enqueue([draft]))
        try queue.end("A")
        draft.id = SessionID(named: "B")
        try queue.tell(.enqueue([draft]))
        #expect(queue.line == "A=completed B=running")
        #expect(try queue.call(.run(again: true), "A") == .duplicate)
        draft.id = SessionID(named: "C")
        try queue.tell(.enqueue([draft]))
        #expect(queue.line == "A=completed B=running")
        try queue.end("B", .finished(failure: .broken, itemsSeen: 1))
        #expect(try queue.call(.run(again: true), "A") == .duplicate)
        #expect(try queue.call(.retry, "B") == nil)
        try queue.end("B")
        #expect(try queue.call(.run(again: true), "A") == nil)
        #expect(queue.line == "A=running B=completed")
    }
}
