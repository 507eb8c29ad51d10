import Testing
import TransferCore
import TransferKit

/// Sessions that run before their turn, and the sessions that make room for them.
@Suite struct DisplacementTests {
    @Test func releasesDisplacedSessionIfAnotherPrecedesPreemptor() throws {
        for isMoved in [false, true] {
            var queue = try SchedulerFixture()
            try queue.add("A B C P Y")
            try queue.apply(.run(), "P")
            try queue.finishStopping("A")
            try queue.perform(.stop(.interrupt))
            try queue.finishStopping("P")
            if isMoved {
                try queue.apply(.move(to: .front), "Y")
            } else {
                try queue.perform(.enqueue([.draft(id: SessionID(named: "X"))], at: 0))
            }
            try queue.perform(.start)
            #expect(try queue.finishAll() == (isMoved ? "A Y B C P" : "A X B C P Y"))
        }
    }

    @Test func unwindsNestedRunsInOrder() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C D")
        #expect(queue.states == "A=running B=waiting C=waiting D=waiting")
        try queue.apply(.run(), "C")
        #expect(queue.states == "A=ending(waiting) B=waiting C=waiting D=waiting")
        try queue.finishStopping("A")
        #expect(queue.states == "A=waiting B=waiting C=running D=waiting")
        #expect(queue.waitReason(of: "A") == .displaced(by: SessionID(named: "C")))
        try queue.apply(.run(), "D")
        try queue.finishStopping("C")
        #expect(queue.states == "A=waiting B=waiting C=waiting D=running")
        #expect(try queue.finishAll() == "D C A B")
    }

    @Test func resumesDisplacedSessionBeforeOthers() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C")
        try queue.apply(.run(), "C")
        try queue.finishStopping("A")
        try queue.apply(.move(to: .end), "A")
        try queue.end("C")
        #expect(queue.states == "B=waiting C=completed A=running")
    }

    @Test func displacesLastOfTwoSessionsInList() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A B C D")
        try queue.apply(.run(), "D")
        #expect(queue.states == "A=running B=ending(waiting) C=waiting D=waiting")
        try queue.apply(.run(), "C")
        #expect(queue.states == "A=ending(waiting) B=ending(waiting) C=waiting D=waiting")
        try queue.finishStopping("B")
        // C starts before D, because the `run` call for C is the later one.
        #expect(queue.states == "A=ending(waiting) B=waiting C=running D=waiting")
        try queue.finishStopping("A")
        #expect(queue.states == "A=waiting B=waiting C=running D=running")
        // D displaced B, and C displaced A.
        try queue.end("D")
        #expect(queue.states == "A=waiting B=running C=running D=completed")
        try queue.end("C")
        #expect(queue.states == "A=running B=running C=completed D=completed")
    }

    @Test func displacesOneOfThreeSessions() throws {
        var queue = try SchedulerFixture(limit: 3)
        try queue.add("A B C D E")
        try queue.apply(.run(), "E")
        try queue.finishStopping("C")
        try queue.apply(.run(), "C")
        // E is now the last running session in the order of the queue, so C displaces E.
        #expect(queue.states == "A=running B=running C=waiting D=waiting E=ending(waiting)")
        try queue.finishStopping("E")
        #expect(queue.states == "A=running B=running C=running D=waiting E=waiting")
        #expect(queue.waitReason(of: "E") == .displaced(by: SessionID(named: "C")))
        try queue.end("A")
        #expect(queue.states == "A=completed B=running C=running D=running E=waiting")
        try queue.end("C")
        #expect(queue.states == "A=completed B=running C=completed D=running E=running")
    }

    @Test(arguments: [1, 2, 3]) func eachRunCallDisplacesOneSession(limit: Int) throws {
        var queue = try SchedulerFixture(limit: limit)
        let first = (0..<limit).map { "A\($0)" }
        let later = (0..<limit).map { "B\($0)" }
        try queue.add((first + later).joined(separator: " "))
        for name in later { try queue.apply(.run(), name) }
        for name in first { try queue.finishStopping(name) }
        let expected = first.map { "\($0)=waiting" } + later.map { "\($0)=running" }
        #expect(queue.states == expected.joined(separator: " "))
        for name in later { try queue.end(name) }
        #expect(queue.states == (first.map { "\($0)=running" } + later.map { "\($0)=completed" }).joined(separator: " "))
    }

    @Test func displacesSessionOfFullAccount() throws {
        var queue = try SchedulerFixture(limit: 2, accountLimit: 1)
        try queue.add("A")
        try queue.add("B", to: "b")
        try queue.add("C")
        try queue.apply(.run(), "C")
        #expect(queue.states == "A=ending(waiting) B=running C=waiting")
    }

    @Test func restoresDisplacedSessionIfPreemptorBacksOff() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C")
        try queue.apply(.run(), "C")
        try queue.finishStopping("A")
        try queue.end("C", .backoff(.seconds(30), .broken))
        #expect(queue.states == "A=running B=waiting C=waiting")
        #expect(queue.waitReason(of: "C") == .retry(at: DualInstant.seconds(30).date))
        try queue.advance(seconds: 30)
        // C waits like any other session, and does not displace a session again.
        #expect(queue.states == "A=running B=waiting C=waiting")
        #expect(queue.waitReason(of: "C") == .order(after: SessionID(named: "B")))
    }

    @Test(arguments: [SessionOperation.hold, .yield, .cancel(), .remove()])
    func restoresDisplacedSessionIfPreemptorIsStopped(operation: SessionOperation) throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C")
        try queue.apply(.run(), "C")
        try queue.finishStopping("A")
        try queue.apply(operation, "C")
        try queue.finishStopping("C")
        #expect(queue.states.hasPrefix("A=running B=waiting"))
    }

    @Test func keepsSessionDisplacedWhilePreemptorIsPaused() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.apply(.run(), "B")
        try queue.finishStopping("A")
        try queue.apply(.pause, "B")
        try queue.finishStopping("B")
        #expect(queue.states == "A=waiting B=paused")
        #expect(queue.waitReason(of: "A") == .displaced(by: SessionID(named: "B")))
        #expect(queue.isIdle)
        try queue.apply(.resume, "B")
        #expect(queue.states == "A=waiting B=running")
        try queue.end("B")
        #expect(queue.states == "A=running B=completed")
    }

    @Test func restoresDisplacedSessionIfPreemptorIsBlocked() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.add("B", to: "b")
        try queue.apply(.run(), "B")
        try queue.finishStopping("A")
        try queue.end("B", .accountBlocked(TransferError(.credentials, .credentialsRejected, "No."), .memory("b")))
        #expect(queue.states == "A=running B=waiting")
        try queue.perform(.unblockAccount(name: "b"))
        #expect(queue.states == "A=running B=waiting")
        #expect(queue.waitReason(of: "B") == .queueLimit)
    }

    @Test func blockedSessionDisplacesNoSession() throws {
        var queue = try SchedulerFixture()
        try queue.add("X", to: "b")
        try queue.end("X", .accountBlocked(TransferError(.trust, .serverNotTrusted, "Who?"), .memory("b")))
        try queue.add("A C")
        try queue.apply(.run(), "X")
        #expect(queue.states == "X=waiting A=running C=waiting")
        try queue.apply(.move(to: .end), "X")
        try queue.perform(.unblockAccount(name: "b"))
        try queue.end("A")
        #expect(queue.states == "A=completed C=waiting X=running")
    }

    @Test func displacesPausedSession() throws {
        var queue = try SchedulerFixture(limit: 2)
        try queue.add("A B C")
        try queue.apply(.pause, "A")
        try queue.apply(.pause, "B")
        try queue.finishStopping("A")
        try queue.finishStopping("B")
        #expect(queue.waitReason(of: "C") == .slotHeld(by: SessionID(named: "A")))
        try queue.apply(.run(), "C")
        #expect(queue.states == "A=paused B=paused(displaced) C=running")
        try queue.end("C")
        #expect(queue.states == "A=paused B=paused C=completed")
    }

    @Test func resumedDisplacedSessionWaitsForSlot() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C")
        try queue.apply(.pause, "A")
        try queue.finishStopping("A")
        try queue.apply(.run(), "C")
        try queue.apply(.resume, "A")
        #expect(queue.states == "A=waiting B=waiting C=running")
        #expect(queue.waitReason(of: "A") == .displaced(by: SessionID(named: "C")))
        #expect(try queue.finishAll() == "C A B")
    }

    @Test func displacedSessionDisplacesItsPreemptor() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.apply(.run(), "B")
        try queue.finishStopping("A")
        try queue.apply(.run(), "A")
        try queue.finishStopping("B")
        #expect(queue.states == "A=running B=waiting")
        #expect(queue.waitReason(of: "B") == .displaced(by: SessionID(named: "A")))
        #expect(try queue.finishAll() == "A B")
    }

    @Test func displacedPausedSessionDisplacesItsPreemptor() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B")
        try queue.apply(.pause, "A")
        try queue.finishStopping("A")
        try queue.apply(.run(), "B")
        #expect(queue.states == "A=paused(displaced) B=running")
        try queue.apply(.run(), "A")
        try queue.finishStopping("B")
        #expect(queue.states == "A=running B=waiting")
        #expect(queue.waitReason(of: "B") == .displaced(by: SessionID(named: "A")))
        #expect(try queue.finishAll() == "A B")
    }

    @Test func displacementSurvivesRestart() throws {
        var queue = try SchedulerFixture()
        try queue.add("A B C")
        try queue.apply(.run(), "C")
        try queue.finishStopping("A")
        try queue.restart()
        #expect(queue.states == "A=waiting B=waiting C=waiting")
        try queue.perform(.start)
        #expect(queue.states == "A=waiting B=waiting C=running")
        #expect(try queue.finishAll() == "C A B")
    }

    @Test func loweredLimitInterruptsNoSession() throws {
        var queue = try SchedulerFixture(limit: 3)
        try queue.add("A B C D")
        try queue.perform(.setMaxConcurrentSessions(1, account: nil))
        #expect(queue.states == "A=running B=running C=running D=waiting")
        // Displacing a single session would not free a slot, so the call displaces no session.
        try queue.apply(.run(), "D")
        #expect(queue.states == "A=running B=running C=running D=waiting")
        try queue.end("A")
        try queue.end("B")
        #expect(queue.states == "A=completed B=completed C=running D=waiting")
        try queue.end("C")
        #expect(queue.states == "A=completed B=completed C=completed D=running")
    }

    @Test func loweredAccountLimitInterruptsNoSession() throws {
        var queue = try SchedulerFixture(limit: 3)
        try queue.add("A B C")
        try queue.perform(.setMaxConcurrentSessions(1, account: "a"))
        try queue.add("D", to: "b")
        #expect(queue.states == "A=running B=running C=running D=waiting")
        try queue.end("A")
        #expect(queue.states == "A=completed B=running C=running D=running")
    }
}
