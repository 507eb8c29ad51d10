import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct NetworkTests {
    private func fixture(limit: Int = 1) throws -> SchedulerFixture {
        var queue = try SchedulerFixture(limit: limit)
        try queue.add("A B")
        try queue.addFrugal("C")
        return queue
    }

    @Test func startsNoSessionWithoutNetwork() throws {
        var queue = try SchedulerFixture()
        try queue.perform(.setNetwork(.unavailable))
        try queue.add("A B")
        #expect(queue.states == "A=waiting B=waiting")
        #expect(queue.waitReason(of: "A") == .networkConstraint(.unavailable))
        #expect(queue.isIdle, "a queue that waits for the app to report a network is idle")
        try queue.apply(.run(), "B")
        #expect(queue.waitReason(of: "B") == .networkConstraint(.unavailable), "run() does not override the network condition")
        try queue.perform(.setNetwork(.expensive))
        #expect(queue.states == "A=waiting B=running")
    }

    @Test func startsOnlyPermittedSessions() throws {
        var queue = try SchedulerFixture()
        try queue.perform(.setNetwork(.expensive))
        try queue.addFrugal("A")
        try queue.add("B")
        #expect(queue.states == "A=waiting B=running")
        #expect(queue.waitReason(of: "A") == .networkConstraint(.expensive))
        try queue.end("B")
        #expect(queue.states == "A=waiting B=completed" && queue.isIdle)
        try queue.perform(.setNetwork(.unconstrained))
        #expect(queue.states == "A=running B=completed")
    }

    @Test func interruptsSessionOnExpensiveNetwork() throws {
        var queue = try fixture(limit: 3)
        #expect(queue.states == "A=running B=running C=running")
        try queue.perform(.setNetwork(.expensive))
        #expect(queue.states == "A=running B=running C=ending(waiting)")
        try queue.finishStopping("C")
        #expect(queue.waitReason(of: "C") == .networkConstraint(.expensive))
        try queue.perform(.setMaxConcurrentSessions(1, account: nil))
        try queue.add("D")
        try queue.apply(.move(to: .front), "D")
        try queue.end("A")
        try queue.perform(.setNetwork(.unconstrained))
        try queue.end("B")
        #expect(queue.states == "D=running A=completed B=completed C=waiting", "D is now at the front")
    }

    @Test func appliesChangedOptionImmediately() throws {
        var queue = try SchedulerFixture()
        try queue.add("A")
        try queue.perform(.setNetwork(.expensive))
        #expect(queue.states == "A=running")
        try queue.apply(.update(SessionUpdate(allowsExpensiveNetwork: false)), "A")
        #expect(queue.states == "A=ending(waiting)")
        try queue.finishStopping("A")
        #expect(queue.waitReason(of: "A") == .networkConstraint(.expensive))
        try queue.apply(.update(SessionUpdate(allowsExpensiveNetwork: true)), "A")
        #expect(queue.states == "A=running")
    }

    @Test func storesOptionButNotNetworkCondition() throws {
        var queue = try SchedulerFixture()
        try queue.addFrugal("A")
        try queue.perform(.setNetwork(.expensive))
        try queue.finishStopping("A")
        try queue.restart()
        try queue.perform(.start)
        #expect(queue.states == "A=running")
        try queue.perform(.setNetwork(.expensive))
        #expect(queue.states == "A=ending(waiting)")
    }

    @Test func respectsNetworkOnRepeatedRun() throws {
        var queue = try SchedulerFixture()
        try queue.addFrugal("A")
        try queue.end("A")
        try queue.perform(.setNetwork(.expensive))
        try queue.apply(.run(again: true), "A")
        #expect(queue.waitReason(of: "A") == .networkConstraint(.expensive))
    }

    @Test func resumesOnPermittedNetworkAfterRestart() async throws {
        let fixture = try QueueFixture()
        var queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("1", atByte: 4_000)
        let session = try await queue.enqueue(try fixture.upload("1", options: SessionOptions(allowsExpensiveNetwork: false)))
        try await queue.start()
        try await gate.reached()
        let events = queue.events
        try await queue.setNetworkCondition(.expensive)
        _ = await events.first { if case .changed([session.id], .waiting) = $0 { true } else { nil } }
        #expect(try await session.status.why == .networkConstraint(.expensive))
        #expect(await queue.status().network == .expensive)
        await queue.shutdown()
        gate.open()
        queue = try await fixture.open()
        try await queue.setNetworkCondition(.expensive)
        try await queue.start()
        #expect(try await queue.status(of: session.id).why == .networkConstraint(.expensive))
        try await queue.setNetworkCondition(.unconstrained)
        await queue.waitUntilIdle()
        #expect(try await queue.status(of: session.id).state == .completed)
        #expect(fixture.memory.attempts.map(\.startOffset) == [0, 4_000])
        await queue.shutdown()
    }
}

extension SchedulerFixture {
    /// Adds a session that must not use an expensive network.
    fileprivate mutating func addFrugal(_ name: String) throws {
        var draft = SessionDraft.draft(id: SessionID(named: name))
        draft.options.allowsExpensiveNetwork = false
        try perform(.enqueue([draft]))
    }
}
