import Foundation
import Testing
import TransferCore
import TransferKit

@Suite struct StoppingTests {
    @Test func yieldedSessionResumesAfterDelay() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.apply(.yield, "A")
        try queue.finishStopping("A")
        #expect(queue.states == "A=waiting")
        #expect(queue.waitReason(of: "A") == .yielded)
        #expect(!queue.isIdle)
        try queue.advance(seconds: 4)
        #expect(queue.states == "A=waiting")
        try queue.advance(seconds: 1)
        #expect(queue.states == "A=running")
    }

    @Test func yieldedSessionResumesAfterDelayIfOtherSessionsAreHeld() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.add("B C", isHeld: true)
        try queue.apply(.yield, "A")
        try queue.finishStopping("A")
        try queue.advance(seconds: 5)
        #expect(queue.states == "A=running B=held C=held")
    }

    @Test func yieldedSessionResumesAfterOtherSession() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C")
        try queue.apply(.yield, "A")
        try queue.finishStopping("A")
        #expect(queue.states == "A=waiting B=running C=waiting")
        #expect(queue.waitReason(of: "A") == .queueLimit)
        #expect(try queue.finishAll() == "B A C")
    }

    @Test func yieldedSessionResumesAfterDelayIfOtherSessionsCannotUseSlot() throws {
        var queue = try SchedulerFixture(limit: 2, accountLimit: 1)
        try queue.add("A B")
        try queue.add("C", to: "b")
        try queue.apply(.pause, "A")
        try queue.finishStopping("A")
        // A keeps the only slot of its account, so B can't use the slot that C frees.
        try queue.apply(.yield, "C")
        try queue.finishStopping("C")
        #expect(queue.states == "A=paused B=waiting C=waiting")
        try queue.advance(seconds: 4)
        #expect(queue.waitReason(of: "C") == .yielded)
        try queue.advance(seconds: 1)
        #expect(queue.states == "A=paused B=waiting C=running")
    }

    @Test func yieldedSessionsLetWaitingSessionStartFirst() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C")
        try queue.apply(.yield, "A")
        try queue.finishStopping("A")
        try queue.apply(.yield, "B")
        try queue.apply(.yield, "A")
        // C waits for the slot that B still uses.
        try queue.advance(seconds: 6)
        #expect(queue.waitReason(of: "A") == .yielded)
        try queue.finishStopping("B")
        #expect(queue.states == "A=waiting B=waiting C=running")
    }

    @Test func secondYieldResetsDelay() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.apply(.yield, "A")
        try queue.finishStopping("A")
        try queue.advance(seconds: 4)
        try queue.apply(.yield, "A")
        try queue.advance(seconds: 4)
        #expect(queue.waitReason(of: "A") == .yielded)
        try queue.advance(seconds: 1)
        #expect(queue.states == "A=running")
    }

    @Test func forgetsYieldOnRestart() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.apply(.yield, "A")
        try queue.restart()
        try queue.perform(.start)
        #expect(queue.states == "A=running")
    }

    @Test func drainIgnoresPausedSessions() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A B C")
        try queue.apply(.pause, "A")
        try queue.finishStopping("A")
        try queue.perform(.stop(.drain))
        #expect(queue.mode == "draining")
        try queue.end("B")
        #expect(queue.states == "A=paused B=completed C=waiting")
        #expect(queue.mode == "stopped")
    }

    @Test func drainInterruptsAtDeadline() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.perform(.stop(.drain, deadline: .seconds(10)))
        try queue.advance(seconds: 9)
        #expect(queue.states == "A=running B=waiting")
        try queue.advance(seconds: 1)
        #expect(queue.states == "A=ending(waiting) B=waiting")
        #expect(queue.mode == "stopping")
        try queue.finishStopping("A")
        #expect(queue.mode == "stopped")
    }

    @Test func startCancelsStop() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A B C")
        try queue.perform(.stop(.interrupt))
        #expect(queue.states == "A=ending(waiting) B=ending(waiting) C=waiting")
        try queue.perform(.start)
        #expect(queue.mode == "running")
        try queue.finishStopping("B")
        // B was interrupted, so it starts before C.
        #expect(queue.states == "A=ending(waiting) B=running C=waiting")
        try queue.finishStopping("A")
        #expect(queue.states == "A=running B=running C=waiting")
    }

    @Test func startCancelsDrain() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A")
        try queue.perform(.stop(.drain, deadline: .seconds(5)))
        try queue.add("B")
        #expect(queue.states == "A=running B=waiting")
        try queue.perform(.start)
        #expect(queue.states == "A=running B=running")
        try queue.advance(seconds: 20)
        #expect(queue.states == "A=running B=running")
    }

    @Test func startsInterruptedSessionsFirst() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.apply(.runNext, "B")
        try queue.end("A", .interrupted)
        #expect(queue.states == "A=waiting B=running")
        try queue.restart()
        try queue.perform(.start)
        // Both sessions have been interrupted, so they start in the order of the queue.
        #expect(queue.states == "A=running B=waiting")
    }

    @Test func startsSessionEnqueuedAtFrontFirst() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.end("A", .backoff(.seconds(60), .broken))
        #expect(queue.states == "A=waiting B=running")
        try queue.restart()
        try queue.perform(.enqueue([.draft(id: SessionID(named: "C"))], at: 0))
        try queue.perform(.start)
        #expect(queue.states.hasPrefix("C=running"))
    }

    @Test func defersRunUntilQueueStarts() throws {
        var queue = try SchedulerFixture()
        try queue.perform(.stop(.interrupt))
        try queue.add("A B")
        try queue.apply(.run(), "B")
        #expect(queue.mode == "stopped")
        #expect(queue.states == "A=waiting B=waiting")
        try queue.perform(.start)
        #expect(queue.states == "A=waiting B=running")
    }

    @Test func keepsSlotIfResumedBeforeRunEnds() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.apply(.pause, "A")
        try queue.apply(.resume, "A")
        #expect(queue.states == "A=ending(running) B=waiting")
        try queue.finishStopping("A")
        #expect(queue.states == "A=running B=waiting")
    }
}
