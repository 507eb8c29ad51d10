import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The maximum time between a session's first start and its end.
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

    /// Opens and starts a queue with a session that uploads one file. The returned gate stops the upload halfway.
    private func beginFile() async throws -> (TransferQueue, TransferSession, MemoryGate) {
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("1", atByte: 5_000)
        let session = try await queue.enqueue(try request("1"))
        try await queue.start()
        try await gate.reached()
        return (queue, session, gate)
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
        // After a retry, the time until the deadline counts from the next start.
        gate.open()
        try await queue.retry(session.id)
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

    @Test func deadlineCountsFromFirstStart() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try request("1"))
        fixture.clock.advance(by: deadline * 2)
        try await queue.start()
        #expect(try await session.value.state == .completed, "the time counts from the first start, not from the call of enqueue")
        await queue.shutdown()
    }

    enum Wait: CaseIterable {
        case retry, blockedAccount, unreachableEndpoint, network, displacement, dependency

        /// Does nothing for a reason with a ``failure``, because the failed attempt already makes the session wait.
        func begin(_ session: TransferSession, _ queue: TransferQueue, _ memory: MemoryTransport) async throws {
            switch self {
            case .retry, .blockedAccount, .unreachableEndpoint: break
            case .network: try await queue.setNetworkCondition(.unavailable)
            case .displacement:
                let other = try await queue.enqueue(.upload(items: [.data(Data(count: 10_000), as: "other")], to: "b"))
                try await other.run()
            case .dependency:
                try await session.hold()
                while try await session.status.state != .held { await Task.yield() }
                var update = SessionUpdate()
                let other = try await queue.enqueue(.upload(items: [.data(Data(count: 1), as: "other")], to: "b"), held: true)
                update.dependency = .set(.after(other.id))
                try await queue.update(session.id, update)
                try await session.release()
            }
        }

        /// The error of the attempt; nil if the attempt does not fail.
        var failure: TransferError? {
            switch self {
            case .retry: TransferError(.transient, .serverError, "Busy.")
            case .blockedAccount: TransferError(.credentials, .credentialsRejected, "No.")
            case .unreachableEndpoint: TransferError(.unreachable, .connectionRefused, "No.")
            case .network, .displacement, .dependency: nil
            }
        }
    }

    @Test(arguments: Wait.allCases) func waitingSessionFailsAtDeadline(wait: Wait) async throws {
        let queue = try await fixture.openWithAccounts()
        let gates = [memory.gate("1", atByte: 5_000), memory.gate("other", atByte: 5_000)]
        var request = try request("1")
        request.options.retry = RetryPolicy(base: .seconds(1_000), maximumDelay: .seconds(1_000))
        if let failure = wait.failure { memory.failNext(100, with: failure) }
        let session = try await queue.enqueue(request)
        let events = queue.events
        try await queue.start()
        if wait.failure == nil { try await gates[0].reached() }
        try await wait.begin(session, queue, memory)
        var status = try await session.status
        while status.state != .waiting || status.why == nil {
            await Task.yield()
            status = try await session.status
        }
        let attempts = memory.attempts.count { $0.path.description == "1" }
        fixture.clock.advance(by: deadline)
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .deadlineExceeded)
        var kinds: [QueueEvent.Kind] = []
        for await event in events {
            kinds.append(event.kind)
            if case .failed = event.kind { break }
        }
        #expect(kinds.count { $0 == .didDeactivate(session.id) } == 1, "the session had no slot when it failed")
        #expect(memory.attempts.count { $0.path.description == "1" } == attempts)
        for gate in gates { gate.open() }
        await queue.shutdown()
    }

    @Test func heldSessionFailsWhenReleased() async throws {
        let (queue, session, gate) = try await beginFile()
        try await session.hold()
        while try await session.status.state != .held { await Task.yield() }
        fixture.clock.advance(by: deadline)
        // When this call returns, the queue has noticed that the deadline has passed.
        try await queue.setRetention(.keepAll)
        #expect(try await session.status.state == .held)
        try await session.release()
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .deadlineExceeded)
        gate.open()
        await queue.shutdown()
    }

    @Test func retryKeepsStartTime() async throws {
        let (queue, session, gate) = try await beginFile()
        try await session.hold()
        while try await session.status.state != .held { await Task.yield() }
        var update = SessionUpdate()
        let start = Date(timeIntervalSince1970: 4_000_000_000)
        update.notBefore = .set(start)
        try await session.update(update)
        try await session.release()
        while try await session.status.state != .waiting { await Task.yield() }
        fixture.clock.advance(by: deadline)
        await #expect(throws: TransferError.self) { try await session.value }
        try await queue.retry(session.id)
        let status = try await session.status
        #expect(status.state == .waiting && status.notBefore == start)
        gate.open()
        await queue.shutdown()
    }

    @Test func pausedSessionWithLaterDeadlineContinues() async throws {
        let (queue, session, gate) = try await beginFile()
        try await session.pause()
        fixture.clock.advance(by: deadline)
        try await queue.setRetention(.keepAll)
        var update = SessionUpdate()
        update.deadline = .set(deadline * 2)
        try await queue.update(session.id, update)
        gate.open()
        try await session.resume()
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

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
        #expect(try await queue.status(of: id).state != .failed, "a session does not fail while it is paused or the queue is stopped")
        let attempts = memory.attempts.count
        try await queue.start()
        if !isRestarted { try await queue.resume(id) }
        let error = await #expect(throws: TransferError.self) { try await queue.session(id).value }
        #expect(error?.code == .deadlineExceeded)
        #expect(memory.attempts.count == attempts, "no attempt begins after the deadline")
        gate.open()
        await queue.shutdown()
    }

    /// The queue measures the time by the machine's uptime.
    @Test func clockSetForwardDoesNotShortenTime() async throws {
        let (queue, session, gate) = try await beginFile()
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
        let (queue, session, gate) = try await beginFile()
        await fixture.clock.waitForSleep(of: deadline)
        var update = SessionUpdate()
        update.deadline = .set(deadline * 2)
        try await queue.update(session.id, update)
        fixture.clock.advance(by: deadline)
        await fixture.clock.waitForSleep(of: deadline)
        #expect(try await session.status.state == .running)
        update.deadline = .set(deadline * 3)
        try await queue.update(session.id, update)
        fixture.clock.advance(by: deadline)
        await fixture.clock.waitForSleep(of: deadline)
        #expect(try await session.status.state == .running)
        update.deadline = .set(deadline / 2)
        try await queue.update(session.id, update)
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .deadlineExceeded)
        gate.open()
        await queue.shutdown()
    }

    @Test func clockSetBackDoesNotExtendTime() async throws {
        let (queue, session, gate) = try await beginFile()
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
