import Testing
import TransferCore
import TransferKit

@Suite struct SpaceTests {
    private static let full = RunOutcome.noSpace(TransferError(.noSpace, .diskFull, "Full."))

    /// The run that ends may have used the space that the other session needs.
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

    /// A failed file releases space, so both sessions check the space again. A run that ends for lack of space releases none, because two such
    /// sessions would otherwise keep waking each other.
    @Test func failedFileBringsCheckOfSpaceForward() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A B")
        try queue.end("B", Self.full)
        try queue.advance(seconds: 10)
        try queue.report("A", .file(position: 0, .failed(.broken)))
        try queue.end("A", Self.full)
        #expect(queue.states == "A=waiting B=waiting" && !queue.isIdle)
        try queue.advance(seconds: 5)
        #expect(queue.states == "A=running B=running")
        for name in ["A", "B"] { try queue.end(name, Self.full) }
        #expect(queue.isIdle)
    }

    /// Each check occupies a slot, so completed sessions do not cause checks while other sessions run.
    @Test func completedSessionsCauseNoChecksWhileOthersRun() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C D")
        try queue.end("A", Self.full)
        try queue.advance(seconds: 10)
        #expect(try queue.finishAll() == "B C D")
        #expect(!queue.isIdle)
        try queue.advance(seconds: 1)
        #expect(queue.states == "A=running B=completed C=completed D=completed")
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
