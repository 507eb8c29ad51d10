import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The maximum time from the start of a session until its end.
@Suite struct DeadlineTests {
    private let fixture: QueueFixture
    private var memory: MemoryTransport { fixture.memory }
    private let deadline = Duration.seconds(100)

    init() throws {
        fixture = try QueueFixture()
    }

    private func request(_ names: String...) throws -> SessionRequest {
        try .upload(
            names.map { try fixture.folder.file($0, size: 10_000) }, to: "a",
            options: SessionOptions(stallTimeout: .seconds(100_000), deadline: deadline, filesInFlight: 1))
    }

    @Test func runningSessionFailsAtDeadline() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("2", atByte: 5_000)
        let session = try await queue.enqueue(try request("1", "2"))
        try await queue.start()
        try await gate.reached()
        await fixture.clock.waitForSleep(of: deadline)
        fixture.clock.advance(by: deadline)
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .deadlineExceeded && error?.message.contains("100") == true, "\(String(describing: error))")
        #expect(try await queue.items(of: session.id).map(\.state) == [.completed, .pending])
        // The time begins again with a retry.
        gate.open()
        try await queue.retry(session.id)
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

    @Test func completesBeforeDeadline() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try request("1"))
        fixture.clock.advance(by: deadline * 2)
        try await queue.start()
        #expect(try await session.value.state == .completed, "the time begins with the first start, not with the call")
        await queue.shutdown()
    }

    /// The time also passes while the session waits for a retry, is paused, or while no process runs the queue.
    @Test(arguments: [false, true]) func timeIncludesPausesAndRestarts(isRestarted: Bool) async throws {
        var queue = try await fixture.openWithAccounts()
        let gate = memory.gate("1", atByte: 5_000)
        let id = try await queue.enqueue(try request("1")).id
        try await queue.start()
        try await gate.reached()
        if isRestarted {
            await queue.shutdown()
            fixture.clock.advance(by: deadline)
            queue = try await fixture.open()
        } else {
            try await queue.pause(id)
            fixture.clock.advance(by: deadline)
        }
        #expect(try await queue.status(of: id).state != .failed, "a session fails only while it runs")
        let attempts = memory.attempts.count
        try await queue.start()
        if !isRestarted { try await queue.resume(id) }
        let error = await #expect(throws: TransferError.self) { try await queue.session(id).value }
        #expect(error?.code == .deadlineExceeded)
        #expect(memory.attempts.count == attempts, "no attempt begins after the deadline")
        gate.open()
        await queue.shutdown()
    }

    /// The time counts by the uptime, so a clock that is set does not use it up.
    @Test func clockSetForwardDoesNotShortenTime() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("1", atByte: 5_000)
        let session = try await queue.enqueue(try request("1"))
        try await queue.start()
        try await gate.reached()
        fixture.clock.advance(by: deadline / 4)
        try await queue.pause(session.id)
        fixture.clock.setDate(by: 1_000_000)
        try await queue.resume(session.id)
        await fixture.clock.waitForSleep(of: deadline * 3 / 4)
        gate.open()
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

    @Test func deadlineCanBeExtendedDuringRun() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("1", atByte: 5_000)
        let session = try await queue.enqueue(try request("1"))
        try await queue.start()
        try await gate.reached()
        await fixture.clock.waitForSleep(of: deadline)
        var update = SessionUpdate()
        update.deadline = .set(deadline * 2)
        try await queue.update(session.id, update)
        await fixture.clock.waitForSleep(of: deadline * 2)
        fixture.clock.advance(by: deadline)
        update.deadline = .set(deadline * 3)
        try await queue.update(session.id, update)
        await fixture.clock.waitForSleep(of: deadline * 2)
        #expect(try await session.status.state == .running)
        update.deadline = .set(deadline / 2)
        try await queue.update(session.id, update)
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .deadlineExceeded)
        gate.open()
        await queue.shutdown()
    }

    /// A date that was set back does not extend the time beyond the deadline.
    @Test func wrongDateDoesNotExtendTime() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("1", atByte: 5_000)
        let session = try await queue.enqueue(try request("1"))
        try await queue.start()
        try await gate.reached()
        try await queue.pause(session.id)
        fixture.clock.setDate(by: -1_000_000)
        try await queue.resume(session.id)
        await fixture.clock.waitForSleep(of: deadline)
        fixture.clock.advance(by: deadline)
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .deadlineExceeded)
        gate.open()
        await queue.shutdown()
    }

    @Test(arguments: [.zero, .milliseconds(999), .seconds(-1)] as [Duration]) func rejectsInvalidDeadline(deadline: Duration) async throws {
        let queue = try await fixture.openWithAccounts()
        let request = try fixture.upload("1", options: SessionOptions(deadline: deadline, filesInFlight: 1))
        await #expect { try await queue.enqueue(request) } throws: { ($0 as? QueueError)?.code == .invalidRequest }
        await queue.shutdown()
    }
}
