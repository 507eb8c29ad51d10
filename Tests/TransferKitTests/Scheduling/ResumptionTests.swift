import Testing
import TransferCore
import TransferKit

@Suite struct ResumptionTests {
    @Test(arguments: [SessionOperation.hold, .yield, .cancel(), .remove()])
    func waitsUntilStoppingRunFreesSlot(operation: SessionOperation) throws {
        var queue = try SchedulerFixture()
        try queue.add("P R")
        try queue.apply(.pause, "P")
        try queue.finishStopping("P")
        try queue.apply(.run(), "R")
        #expect(queue.states == "P=paused(displaced) R=running")
        try queue.apply(operation, "R")
        #expect(queue.session("P")?.holdsSlot == true)
        try queue.apply(.resume, "P")
        #expect(queue.states.hasPrefix("P=waiting"))
        #expect(queue.waitReason(of: "P") == .queueLimit)
        try queue.finishStopping("R")
        #expect(queue.states.hasPrefix("P=running"))
    }

    @Test(arguments: [nil, "a"]) func respectsLoweredLimit(account: String?) throws {
        var queue = try SchedulerFixture(limit: 3)
        try queue.add("A B C")
        for name in ["A", "B", "C"] {
            try queue.apply(.pause, name)
            try queue.finishStopping(name)
        }
        try queue.perform(.setMaxConcurrentSessions(2, account: account))
        try queue.perform(.perform(.resume, .group(.all)))
        #expect(queue.states == "A=running B=running C=waiting")
        #expect(queue.waitReason(of: "C") == (account == nil ? .queueLimit : .accountLimit))
        #expect(try queue.finishAll() == "A B C")
    }

    @Test func displacesOtherSessionBeyondLimit() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A B")
        try queue.apply(.pause, "B")
        try queue.finishStopping("B")
        try queue.perform(.setMaxConcurrentSessions(1, account: nil))
        try queue.apply(.run(), "B")
        #expect(queue.states == "A=ending(waiting) B=waiting")
        try queue.finishStopping("A")
        #expect(queue.states == "A=waiting B=running")
        #expect(queue.waitReason(of: "A") == .displaced(by: SessionID(named: "B")))
        #expect(try queue.finishAll() == "B A")
    }

    @Test func waitsUntilActiveSessionFreesSlot() throws {
        var queue = try SchedulerFixture()
        try queue.add("P")
        try queue.add("R", to: "b")
        try queue.apply(.pause, "P")
        try queue.finishStopping("P")
        try queue.apply(.run(), "R")
        try queue.add("X")
        try queue.apply(.run(), "X")
        try queue.finishStopping("R")
        #expect(queue.states == "P=paused(displaced) R=waiting X=running")
        // R displaced P, so the cancellation of R ends the displacement.
        try queue.apply(.cancel(), "R")
        #expect(queue.states == "P=paused R=cancelled X=running")
        try queue.apply(.resume, "P")
        #expect(queue.states == "P=waiting R=cancelled X=running")
        try queue.end("X")
        #expect(queue.states == "P=running R=cancelled X=completed")
    }

    @Test func continuesIfResumedBeforeRunEnds() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.apply(.pause, "A")
        try queue.apply(.resume, "A")
        try queue.finishStopping("A")
        #expect(queue.states == "A=running")
    }
}
