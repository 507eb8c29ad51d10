import Testing
import TransferCore
import TransferKit

@Suite struct SpaceTests {
    private static let full = RunOutcome.noSpace(TransferError(.noSpace, .diskFull, "Full."))

    /// The run that ends may have used the space that the other session needs. Its part file is removed after the end of the run.
    @Test func endOfRunBringsCheckOfSpaceForward() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A B")
        try queue.end("B", Self.full)
        try queue.advance(seconds: 10)
        try queue.apply(.cancel(discarding: true), "A")
        try queue.finishStopping("A")
        #expect(queue.states == "A=cancelled B=waiting")
        #expect(!queue.isIdle)
        if case .noSpace? = queue.waitReason(of: "B") {} else { Issue.record("\(String(describing: queue.waitReason(of: "B")))") }
        try queue.advance(seconds: 1)
        #expect(queue.states == "A=cancelled B=running")
        try queue.end("B", Self.full)
        #expect(queue.isIdle)
    }

    /// The session's last check of the space may have preceded the end of the other run.
    @Test func sessionChecksSpaceReleasedDuringItsRun() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A B")
        try queue.end("A")
        try queue.end("B", Self.full)
        #expect(!queue.isIdle)
        try queue.advance(seconds: 5)
        #expect(queue.states == "A=completed B=running")
        try queue.end("B", Self.full)
        #expect(queue.isIdle)
    }
}
