import Testing
import TransferCore
import TransferKit

/// Paused sessions that are resumed while other sessions run.
@Suite struct ResumptionTests {
    @Test(arguments: [SessionOperation.hold, .yield, .cancel(), .remove()])
    func waitsUntilEndingRunFreesSlot(operation: SessionOperation) throws {
        var queue = try Rehearsal()
        try queue.add("P R")
        try queue.call(.pause, "P")
        try queue.finishStopping("P")
        try queue.call(.run(), "R")
        #expect(queue.line == "P=paused(displaced) R=running")
        try queue.call(operation, "R")
        #expect(queue.session("P")?.holdsSlot == true)
        try queue.call(.resume, "P")
        #expect(queue.line.hasPrefix("P=waiting"))
        #expect(queue.why("P") == .queueLimit)
        try queue.finishStopping("R")
        #expect(queue.line.hasPrefix("P=running"))
    }

    @Test(arguments: [nil, "a"]) func respectsLoweredLimit(account: String?) throws {
        var queue = try Rehearsal(limit: 3)
        try queue.add("A B C")
        for name in ["A", "B", "C"] {
            try queue.call(.pause, name)
            try queue.finishStopping(name)
        }
        try queue.perform(.setMaxConcurrentSessions(2, account: account))
        try queue.perform(.perform(.resume, .group(.all)))
        #expect(queue.line == "A=running B=running C=waiting")
        #expect(queue.why("C") == (account == nil ? .queueLimit : .accountLimit))
        #expect(try queue.finishAll() == "A B C")
    }

    @Test func displacesOtherSessionBeyondLimit() throws {
        var queue = try Rehearsal(limit: 2)
        try queue.add("A B")
        try queue.call(.pause, "B")
        try queue.finishStopping("B")
        try queue.perform(.setMaxConcurrentSessions(1, account: nil))
        try queue.call(.run(), "B")
        #expect(queue.line == "A=ending(waiting) B=waiting")
        try queue.finishStopping("A")
        #expect(queue.line == "A=waiting B=running")
        #expect(queue.why("A") == .displaced(by: SessionID(named: "B")))
        #expect(try queue.finishAll() == "B A")
    }

    @Test func waitsUntilActiveSessionFreesSlot() throws {
        var queue = try Rehearsal()
        try queue.add("P")
        try queue.add("R", to: "b")
        try queue.call(.pause, "P")
        try queue.finishStopping("P")
        try queue.call(.run(), "R")
        try queue.add("X")
        try queue.call(.run(), "X")
        try queue.finishStopping("R")
        #expect(queue.line == "P=paused(displaced) R=waiting X=running")
        // R displaced P, so the cancellation of R ends the displacement.
        try queue.call(.cancel(), "R")
        #expect(queue.line == "P=paused R=cancelled X=running")
        try queue.call(.resume, "P")
        #expect(queue.line == "P=waiting R=cancelled X=running")
        try queue.end("X")
        #expect(queue.line == "P=running R=cancelled X=completed")
    }

    @Test func continuesIfResumedBeforeRunEnds() throws {
        var queue = try Rehearsal()
        try queue.add("A")
        try queue.call(.pause, "A")
        try queue.call(.resume, "A")
        try queue.finishStopping("A")
        #expect(queue.line == "A=running")
    }
}
