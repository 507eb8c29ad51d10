import Foundation
import Testing
import TransferCore
import TransferKit

/// Strict ordering, dependencies and deduplication keys.
@Suite struct StrictOrderTests {
    @Test func waitsForUnfinishedSession() throws {
        var queue = try SchedulerFixture(limit: 3, isStrict: true)
        try queue.add("A B C")
        #expect(queue.states == "A=running B=waiting C=waiting")
        try queue.end("A", .backoff(.seconds(30), .broken))
        #expect(queue.states == "A=waiting B=waiting C=waiting")
        #expect(queue.waitReason(of: "B") == .strictOrder(after: SessionID(named: "A")))
        try queue.apply(.cancel(), "A")
        #expect(queue.states == "A=cancelled B=running C=waiting")
        try queue.end("B", .finished(failure: .broken, ignoresNewFiles: false))
        #expect(queue.states == "A=cancelled B=failed C=running")
    }

    @Test func onlyRunCallOverridesOrder() throws {
        var queue = try SchedulerFixture(isStrict: true)
        try queue.add("A B C")
        try queue.apply(.runNext, "C")
        try queue.end("A")
        #expect(queue.states == "A=completed B=running C=waiting")
        try queue.apply(.run(), "C")
        try queue.finishStopping("B")
        #expect(queue.states == "A=completed B=waiting C=running")
        try queue.end("C")
        #expect(queue.states == "A=completed B=running C=completed")
    }

    private static let full = RunOutcome.noSpace(TransferError(.noSpace, .diskFull, "Full."))

    /// The part file of the started session may occupy the space that the first session waits for.
    @Test func continuesStartedSessionWhileFirstWaitsForSpace() throws {
        var queue = try SchedulerFixture(isStrict: true)
        try queue.add("B C D")
        try queue.end("B", .backoff(.seconds(20), .broken))
        try queue.apply(.run(), "D")
        try queue.end("D", .backoff(.seconds(5), .broken))
        try queue.perform(.enqueue([.draft(id: SessionID(named: "A"))], at: 0))
        #expect(queue.states == "A=running B=waiting C=waiting D=waiting")
        try queue.end("A", Self.full)
        #expect(!queue.isIdle)
        try queue.advance(seconds: 5)
        #expect(queue.states == "A=waiting B=waiting C=waiting D=running")
        #expect(queue.waitReason(of: "C") == .strictOrder(after: SessionID(named: "A")))
        try queue.advance(seconds: 16)
        #expect(queue.waitReason(of: "B") == .queueLimit)
        try queue.end("D")
        #expect(queue.states == "A=waiting B=running C=waiting D=completed")
        try queue.advance(seconds: 15)
        #expect(queue.waitReason(of: "A") == .queueLimit)
        try queue.end("B")
        #expect(queue.states == "A=running B=completed C=waiting D=completed")
        try queue.end("A", Self.full)
        #expect(queue.states == "A=waiting B=completed C=waiting D=completed")
        // The end of B may have released space, so the queue checks once more.
        #expect(!queue.isIdle)
        try queue.advance(seconds: 5)
        try queue.end("A", Self.full)
        #expect(queue.isIdle)
    }

    @Test func startedSessionWaitsForItsEndpoint() throws {
        var queue = try SchedulerFixture(isStrict: true)
        try queue.add("B", to: "b")
        try queue.report("B", .hostBusy(Account.memory("b").endpoints[0], .seconds(20)))
        try queue.end("B", .endpointsUnavailable(.broken))
        try queue.perform(.enqueue([.draft(id: SessionID(named: "A"))], at: 0))
        try queue.end("A", Self.full)
        #expect(queue.states == "A=waiting B=waiting")
        try queue.advance(seconds: 20)
        #expect(queue.states == "A=waiting B=running")
    }

    @Test func forecastLetsOnlyStartedSessionsPassWaitingOnes() throws {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"], ordering: .strict))
        _ = try scheduler.perform(.saveAccount(.memory("a")))
        _ = try scheduler.perform(.enqueue([.draft(), .draft()]))
        _ = try scheduler.perform(.start)
        _ = try scheduler.report(.ended(.backoff(.seconds(20), .broken)), of: 1)
        #expect(scheduler.forecastInput(limit: 10, at: .start).waiting.map(\.passes) == [false, false])
        _ = try scheduler.perform(.enqueue([.draft()], at: 0))
        _ = try scheduler.report(.ended(Self.full), of: 3)
        let waiting = scheduler.forecastInput(limit: 10, at: .start).waiting
        #expect(waiting.map(\.key) == [3, 1, 2] && waiting.map(\.passes) == [false, true, false])
    }

    @Test func countsInterruptedSessionAsStarted() throws {
        var queue = try SchedulerFixture(isStrict: true)
        try queue.add("B C")
        try queue.restart()
        try queue.perform(.enqueue([.draft(id: SessionID(named: "A"))], at: 0))
        try queue.perform(.start)
        try queue.end("A", Self.full)
        #expect(queue.states == "A=waiting B=running C=waiting")
    }

    @Test func resumesYieldedSessionAfterDelay() throws {
        var queue = try SchedulerFixture(isStrict: true)
        try queue.add("A B")
        try queue.apply(.yield, "A")
        try queue.finishStopping("A")
        #expect(queue.states == "A=waiting B=waiting")
        try queue.advance(seconds: 5)
        #expect(queue.states == "A=running B=waiting")
    }

    /// Sessions of a group may depend on each other, so the check must cover the whole group.
    @Test func checksMoveOfWholeGroup() throws {
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

    @Test func reportsMissingDependencyBeforeCycle() throws {
        var queue = try SchedulerFixture()
        var drafts = ["A", "B"].map { SessionDraft.draft(id: SessionID(named: $0)) }
        drafts[0].dependency = SessionDependency(drafts[0].id)
        #expect(try queue.perform(.enqueue(drafts)) == .impossibleOrder)
        drafts[1].dependency = SessionDependency(SessionID(named: "missing"))
        #expect(try queue.perform(.enqueue(drafts)) == .noSuchSession)
    }

    @Test func rejectsDependencyOnLaterSession() throws {
        var queue = try SchedulerFixture(isStrict: true)
        try queue.add("A B")
        #expect(try queue.add("C", after: "B", at: 0) == .impossibleOrder)
        #expect(try queue.add("C", after: "B") == nil)
        #expect(try queue.apply(.move(to: .front), "C") == .impossibleOrder)
        #expect(try queue.apply(.move(to: .end), "B") == .impossibleOrder)
        #expect(queue.states == "A=running B=waiting C=waiting")
    }

    @Test func dependentWaitsForSuccessOrAnyEnd() throws {
        var queue = try SchedulerFixture(limit: 3)
        try queue.add("A")
        #expect(try queue.add("B", after: "A") == nil)
        #expect(try queue.add("C", after: "A", acceptsAnyEnd: true) == nil)
        #expect(queue.states == "A=running B=waiting C=waiting")
        try queue.end("A", .finished(failure: .broken, ignoresNewFiles: false))
        #expect(queue.states == "A=failed B=waiting C=running")
        #expect(queue.waitReason(of: "B") == .after(SessionID(named: "A"), .failed))
        #expect(try queue.apply(.remove(), "A") == .hasDependents)
        try queue.apply(.retry, "A")
        try queue.end("A")
        #expect(queue.states == "A=completed B=running C=running")
        #expect(try queue.apply(.remove(), "A") == nil)
    }

    @Test func rejectsRunAgainIfKeyIsReused() throws {
        var queue = try SchedulerFixture()
        var draft = SessionDraft.draft(id: SessionID(named: "A"))
        draft.deduplicationKey = "key"
        try queue.perform(.enqueue([draft]))
        try queue.end("A")
        draft.id = SessionID(named: "B")
        try queue.perform(.enqueue([draft]))
        #expect(queue.states == "A=completed B=running")
        #expect(try queue.apply(.run(again: true), "A") == .duplicate)
        draft.id = SessionID(named: "C")
        try queue.perform(.enqueue([draft]))
        #expect(queue.states == "A=completed B=running")
        try queue.end("B", .finished(failure: .broken, ignoresNewFiles: false))
        #expect(try queue.apply(.run(again: true), "A") == .duplicate)
        #expect(try queue.apply(.retry, "B") == nil)
        try queue.end("B")
        #expect(try queue.apply(.run(again: true), "A") == nil)
        #expect(queue.states == "A=running B=completed")
    }

    @Test func returnsCompletedSessionsUntilTheirRemoval() throws {
        var queue = try SchedulerFixture()
        func draft(_ name: String, includesCompleted: Bool) -> SessionDraft {
            var draft = SessionDraft.draft(id: SessionID(named: name))
            draft.deduplicationKey = "key"
            draft.deduplicatesCompleted = includesCompleted
            return draft
        }
        // Each call of `perform` compares the returned session with the result of `ReferenceQueue`.
        try queue.perform(.enqueue([draft("A", includesCompleted: true)]))
        try queue.end("A")
        try queue.perform(.enqueue([draft("B", includesCompleted: true)]))
        #expect(queue.states == "A=completed")
        try queue.perform(.enqueue([draft("C", includesCompleted: false)]))
        #expect(queue.states == "A=completed C=running")
        try queue.perform(.enqueue([draft("D", includesCompleted: true)]))
        #expect(queue.states == "A=completed C=running")
        try queue.end("C")
        try queue.perform(.enqueue([draft("E", includesCompleted: true)]))
        #expect(queue.states == "A=completed C=completed")
        try queue.apply(.remove(), "C")
        try queue.perform(.enqueue([draft("F", includesCompleted: true)]))
        #expect(queue.states == "A=completed")
        try queue.apply(.remove(), "A")
        try queue.perform(.enqueue([draft("G", includesCompleted: true)]))
        #expect(queue.states == "G=running")
    }
}
