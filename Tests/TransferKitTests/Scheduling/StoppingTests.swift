import Foundation
import Testing
import TransferCore
import TransferKit

/// Sessions and queues that are stopped, drained and started again.
@Suite struct StoppingTests {
    @Test func theOnlySessionGoesOnAfterTheDelay() throws {
        var queue = try Rehearsal()
        try queue.add("A")
        try queue.call(.yield, "A")
        try queue.letGo("A")
        #expect(queue.line == "A=waiting")
        #expect(queue.why("A") == .yielded)
        #expect(!queue.isIdle)
        try queue.pass(seconds: 4)
        #expect(queue.line == "A=waiting")
        try queue.pass(seconds: 1)
        #expect(queue.line == "A=running")
    }

    @Test func oneWhoseOthersAreAllHeldGoesOnAfterTheDelay() throws {
        var queue = try Rehearsal()
        try queue.add("A")
        try queue.add("B C", isHeld: true)
        try queue.call(.yield, "A")
        try queue.letGo("A")
        try queue.pass(seconds: 5)
        #expect(queue.line == "A=running B=held C=held")
    }

    @Test func withOthersItGoesOnOnceOneOfThemHadItsTurn() throws {
        var queue = try Rehearsal()
        try queue.add("A B C")
        try queue.call(.yield, "A")
        try queue.letGo("A")
        #expect(queue.line == "A=waiting B=running C=waiting")
        #expect(queue.why("A") == .queueLimit)
        #expect(try queue.finishAll() == "B A C")
    }

    @Test func oneThatCouldNotUseItsSlotDoesNotKeepItFromGoingOn() throws {
        var queue = try Rehearsal(limit: 2, accountLimit: 1)
        try queue.add("A B")
        try queue.add("C", to: "b")
        try queue.call(.pause, "A")
        try queue.letGo("A")
        // B waits for the slot of its account, which A keeps, and the queue has one free slot.
        try queue.call(.yield, "C")
        try queue.letGo("C")
        #expect(queue.line == "A=paused B=waiting C=waiting")
        try queue.pass(seconds: 4)
        #expect(queue.why("C") == .yielded)
        try queue.pass(seconds: 1)
        #expect(queue.line == "A=paused B=waiting C=running")
    }

    @Test func oneThatWaitsForASlotOfTheQueueGoesBeforeIt() throws {
        var queue = try Rehearsal()
        try queue.add("A B C")
        try queue.call(.yield, "A")
        try queue.letGo("A")
        try queue.call(.yield, "B")
        try queue.call(.yield, "A")
        // C waits for the slot that B still uses.
        try queue.pass(seconds: 6)
        #expect(queue.why("A") == .yielded)
        try queue.letGo("B")
        #expect(queue.line == "A=waiting B=waiting C=running")
    }

    @Test func stoppingAgainBeginsTheDelayAnew() throws {
        var queue = try Rehearsal()
        try queue.add("A")
        try queue.call(.yield, "A")
        try queue.letGo("A")
        try queue.pass(seconds: 4)
        try queue.call(.yield, "A")
        try queue.pass(seconds: 4)
        #expect(queue.why("A") == .yielded)
        try queue.pass(seconds: 1)
        #expect(queue.line == "A=running")
    }

    @Test func theMarkDoesNotSurviveARestart() throws {
        var queue = try Rehearsal()
        try queue.add("A")
        try queue.call(.yield, "A")
        try queue.restart()
        try queue.tell(.start)
        #expect(queue.line == "A=running")
    }

    @Test func drainingWaitsForNoPausedSession() throws {
        var queue = try Rehearsal(limit: 2)
        try queue.add("A B C")
        try queue.call(.pause, "A")
        try queue.letGo("A")
        try queue.tell(.stop(.drain))
        #expect(queue.mode == "draining")
        try queue.end("B")
        #expect(queue.line == "A=paused B=completed C=waiting")
        #expect(queue.mode == "stopped")
    }

    @Test func atItsDeadlineADrainInterrupts() throws {
        var queue = try Rehearsal()
        try queue.add("A B")
        try queue.tell(.stop(.drain, deadline: .seconds(10)))
        try queue.pass(seconds: 9)
        #expect(queue.line == "A=running B=waiting")
        try queue.pass(seconds: 1)
        #expect(queue.line == "A=ending(waiting) B=waiting")
        #expect(queue.mode == "stopping")
        try queue.letGo("A")
        #expect(queue.mode == "stopped")
    }

    @Test func startDuringStopCancelsIt() throws {
        var queue = try Rehearsal(limit: 2)
        try queue.add("A B C")
        try queue.tell(.stop(.interrupt))
        #expect(queue.line == "A=ending(waiting) B=ending(waiting) C=waiting")
        try queue.tell(.start)
        #expect(queue.mode == "running")
        try queue.letGo("B")
        // It was interrupted, so it goes before the list.
        #expect(queue.line == "A=ending(waiting) B=running C=waiting")
        try queue.letGo("A")
        #expect(queue.line == "A=running B=running C=waiting")
    }

    @Test func startDuringDrainCancelsIt() throws {
        var queue = try Rehearsal(limit: 2)
        try queue.add("A")
        try queue.tell(.stop(.drain, deadline: .seconds(5)))
        try queue.add("B")
        #expect(queue.line == "A=running B=waiting")
        try queue.tell(.start)
        #expect(queue.line == "A=running B=running")
        try queue.pass(seconds: 20)
        #expect(queue.line == "A=running B=running")
    }

    @Test func whatWasInterruptedGoesFirst() throws {
        var queue = try Rehearsal()
        try queue.add("A B")
        try queue.call(.runNext, "B")
        try queue.end("A", .interrupted)
        #expect(queue.line == "A=waiting B=running")
        try queue.restart()
        try queue.tell(.start)
        // Both have been interrupted by now.
        #expect(queue.line == "A=running B=waiting")
    }

    @Test func unlessSomethingWasPutBeforeIt() throws {
        var queue = try Rehearsal()
        try queue.add("A B")
        try queue.end("A", .backoff(.seconds(60), .broken))
        #expect(queue.line == "A=waiting B=running")
        try queue.restart()
        try queue.tell(.enqueue([.draft(id: SessionID(named: "C"))], at: 0))
        try queue.tell(.start)
        #expect(queue.line.hasPrefix("C=running"))
    }

    @Test func aRunOnAStoppedQueueIsOnlyMarked() throws {
        var queue = try Rehearsal()
        try queue.tell(.stop(.interrupt))
        try queue.add("A B")
        try queue.call(.run(), "B")
        #expect(queue.mode == "stopped")
        #expect(queue.line == "A=waiting B=waiting")
        try queue.tell(.start)
        #expect(queue.line == "A=waiting B=running")
    }

    @Test func aResumeBeforeTheRunLetGoRunsAgainWithTheSameSlot() throws {
        var queue = try Rehearsal()
        try queue.add("A B")
        try queue.call(.pause, "A")
        try queue.call(.resume, "A")
        #expect(queue.line == "A=ending(running) B=waiting")
        try queue.letGo("A")
        #expect(queue.line == "A=running B=waiting")
    }
}
