import Foundation
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct DiscardTests {
    private let fixture: QueueFixture
    private let transport: StubbornTransport

    init() throws {
        fixture = try QueueFixture()
        transport = StubbornTransport(fixture.memory)
    }

    /// Opens a queue with one cancelled session for each host. Each session has a partial upload.
    ///
    /// - Parameter hung: A latch that opens when the removal at the first host hangs.
    private func openWithCancelledSessions(_ hosts: [String], waitingFor hung: Latch) async throws -> TransferQueue {
        try await openWithCancelledSessions(hosts) { _ in try await hung.wait() }
    }

    /// Opens a queue with one cancelled session for each host. Each session has a partial upload.
    ///
    /// - Parameter wait: A closure that waits until the removal at the first host has begun.
    private func openWithCancelledSessions(
        _ hosts: [String], waiting wait: (TransferQueue) async throws -> Void
    ) async throws -> TransferQueue {
        let queue = try await fixture.open(transports: [transport])
        try await queue.setMaxConcurrentSessions(hosts.count)
        var sessions: [TransferSession] = []
        for host in hosts { try await queue.save(Account(host, endpoints: [fixture.memory.endpoint(host: host)])) }
        for host in hosts {
            let gate = fixture.memory.gate(host, atByte: 4_000)
            sessions.append(try await queue.enqueue(try fixture.upload(host, to: host)))
            try await queue.start()
            try await gate.reached()
        }
        // Cancels the first session alone, so that this session's removal begins first.
        try await sessions.removeFirst().cancel(discarding: true)
        try await wait(queue)
        try await queue.apply(.cancel(discarding: true), to: .sessions(sessions.map(\.id)))
        return queue
    }

    private func pendingRemovals(_ queue: TransferQueue) async throws -> Int {
        let store = try StoreInspection(fixture.folder.path.appending("store"))
        return try store.count("discard") ?? -1
    }

    /// Advances the time repeatedly, because a task may have read the clock just before the time advanced.
    private func advanceUntilNoRemovalIsPending(_ queue: TransferQueue) async throws {
        while try await pendingRemovals(queue) > 0 {
            fixture.clock.advance(by: .seconds(10))
            await queue.waitUntilIdle()
        }
    }

    @Test func retriesHangingRemovalAfterTimeout() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: true)
        let queue = try await openWithCancelledSessions(["a", "b", "c"], waitingFor: hung)
        #expect(fixture.memory.partialCount == 3)
        await fixture.clock.waitForSleep(of: .seconds(120))
        fixture.clock.advance(by: .seconds(120))
        await queue.waitUntilIdle()
        #expect(fixture.memory.partialCount == 1)
        #expect(try await pendingRemovals(queue) == 1)
        transport.acceptRequests()
        // The first delay is at most ten seconds.
        try await advanceUntilNoRemovalIsPending(queue)
        #expect(fixture.memory.partialCount == 0)
        await queue.shutdown()
    }

    @Test func hangingRemovalDoesNotDelayOtherHosts() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: true)
        let queue = try await openWithCancelledSessions(["a", "b", "c"], waitingFor: hung)
        while fixture.memory.partialCount > 1 { await Task.yield() }
        await fixture.clock.waitForSleep(of: .seconds(120))
        fixture.clock.advance(by: .seconds(120))
        await queue.waitUntilContentRemoved()
        await queue.shutdown()
    }

    @Test func givesUpAfterWeek() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: false)
        let queue = try await openWithCancelledSessions(["a"], waitingFor: hung)
        fixture.clock.advance(by: .seconds(8 * 24 * 3_600))
        await queue.waitUntilIdle()
        #expect(try await pendingRemovals(queue) == 0)
        #expect(fixture.memory.partialCount == 1, "only the server itself can still remove the upload")
        await queue.shutdown()
    }

    @Test func shutsDownDespiteHangingHost() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: true)
        let queue = try await openWithCancelledSessions(["a"], waitingFor: hung)
        let end = Task { await queue.shutdown() }
        await fixture.clock.waitForSleep(of: .seconds(5))
        fixture.clock.advance(by: .seconds(5))
        await end.value
        #expect(try await pendingRemovals(queue) == 1)
    }
}

extension DiscardTests {
    /// Opens a queue with `count` cancelled sessions at a host. Each session has a partial upload.
    private func openWithCancelledSessions(at host: String, count: Int, logger: Logger? = nil) async throws -> TransferQueue {
        let queue = try await fixture.open(transports: [transport], logger: logger)
        try await queue.setMaxConcurrentSessions(count)
        try await queue.save(Account(host, endpoints: [fixture.memory.endpoint(host: host)]))
        let gates = (0..<count).map { fixture.memory.gate("f\($0)", atByte: 4_000) }
        var sessions: [SessionID] = []
        for number in 0..<count { sessions.append(try await queue.enqueue(try fixture.upload("f\(number)", to: host)).id) }
        try await queue.start()
        for gate in gates { try await gate.reached() }
        try await queue.apply(.cancel(discarding: true), to: .sessions(sessions))
        return queue
    }

    @Test func sendsOneRequestToHangingHost() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: true)
        let queue = try await openWithCancelledSessions(at: "a", count: 40)
        try await hung.wait()
        await fixture.clock.waitForSleep(of: .seconds(120))
        fixture.clock.advance(by: .seconds(120))
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 1)
        #expect(try await pendingRemovals(queue) == 40)
        await queue.shutdown()
    }

    @Test func backsOffAsLongAsHostRequests() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(3_000)))
        let queue = try await openWithCancelledSessions(at: "a", count: 40)
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 1)
        transport.acceptRequests()
        fixture.clock.advance(by: .seconds(2_990))
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 1)
        fixture.clock.advance(by: .seconds(3_600))
        try await advanceUntilNoRemovalIsPending(queue)
        #expect(fixture.memory.partialCount == 0)
        await queue.shutdown()
    }

    @Test func delayOfHostDoesNotApplyToOtherHosts() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(3_000)))
        let queue = try await openWithCancelledSessions(["a", "b", "c"]) { queue in
            while transport.requestCount == 0 { await Task.yield() }
            await queue.waitUntilContentRemoved()
        }
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 3 && fixture.memory.partialCount == 1)
        #expect(try await pendingRemovals(queue) == 1)
        transport.acceptRequests()
        fixture.clock.advance(by: .seconds(2_990))
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 3, "the delay still applies to the first host")
        fixture.clock.advance(by: .seconds(3_600))
        try await advanceUntilNoRemovalIsPending(queue)
        #expect(fixture.memory.partialCount == 0)
        await queue.shutdown()
    }

    /// After a week, the host's next response makes the queue give up all removals at this host.
    @Test func givesUpIfHostPostponesForWeek() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(3_000)))
        let queue = try await openWithCancelledSessions(at: "a", count: 40)
        await queue.waitUntilIdle()
        fixture.clock.advance(by: .seconds(8 * 24 * 3_600))
        while try await pendingRemovals(queue) > 0 { await queue.waitUntilIdle() }
        #expect(transport.requestCount == 2)
        await queue.shutdown()
    }

    /// A machine whose clock has no battery boots in 1970, and gets the correct date later.
    @Test func changedDateKeepsRemovals() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later."))
        var queue = try await openWithCancelledSessions(at: "a", count: 2)
        await queue.waitUntilIdle()
        fixture.clock.setDate(by: 50.0 * 365 * 24 * 3_600)
        fixture.clock.advance(by: .seconds(3_600))
        while transport.requestCount < 4 { await queue.waitUntilIdle() }
        #expect(try await pendingRemovals(queue) == 2)
        await queue.shutdown()

        // The first process postponed the removals while the date was 50 years later. With the earlier date, the next process must still try the
        // removals.
        fixture.clock.setDate(by: -50.0 * 365 * 24 * 3_600)
        transport.acceptRequests()
        queue = try await fixture.open(transports: [transport])
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await pendingRemovals(queue) == 0 && fixture.memory.partialCount == 0)
        await queue.shutdown()
    }

    /// After a failure of the class `unsupported`, the queue gives up the removal, and logs a warning. If the failure's code is also
    /// `unsupported`, the server does not support removals, and the queue logs nothing.
    @Test(arguments: [(TransferError.Code.credentialsRejected, 3), (.unsupported, 0)])
    func warnsAboutAbandonedUploads(code: TransferError.Code, warningCount: Int) async throws {
        let warnings = Locked(0)
        transport.refuse(at: "a", TransferError(.unsupported, code, "No."))
        let logger = Logger(label: "test") { _ in CountingLog(warnings: warnings) }
        let queue = try await openWithCancelledSessions(at: "a", count: 3, logger: logger)
        await queue.waitUntilIdle()
        try await advanceUntilNoRemovalIsPending(queue)
        #expect(transport.requestCount == 3)
        #expect(warnings.withLock { $0 } == warningCount)
        await queue.shutdown()
    }

    /// Before a queue becomes idle, it tries the postponed removals of an earlier process once.
    @Test func nextProcessTriesPostponedRemovals() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later."))
        var queue = try await openWithCancelledSessions(at: "a", count: 70)
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 70)
        #expect(try await queue.statistics().removalsDue == 70)
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 70, "the queue has already tried these removals")
        await queue.shutdown()
        for (requestCount, left) in [(140, 70), (210, 0)] {
            if left == 0 { transport.acceptRequests() }
            queue = try await fixture.open(transports: [transport])
            await queue.waitUntilContentRemoved()
            try await queue.start()
            await queue.waitUntilIdle()
            #expect(transport.requestCount == requestCount)
            #expect(try await queue.statistics().removalsDue == left)
            await queue.shutdown()
        }
        #expect(fixture.memory.partialCount == 0)
    }

    @Test func nextProcessRespectsDelayOfServer() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(3_000)))
        var queue = try await openWithCancelledSessions(at: "a", count: 3)
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 1)
        await queue.shutdown()
        transport.acceptRequests()
        for (passed, requestCount, left) in [(2_990, 1, 3), (20, 4, 0)] {
            fixture.clock.advance(by: .seconds(passed))
            queue = try await fixture.open(transports: [transport])
            await queue.waitUntilContentRemoved()
            try await queue.start()
            await queue.waitUntilIdle()
            #expect(transport.requestCount == requestCount)
            #expect(try await queue.statistics().removalsDue == left)
            await queue.shutdown()
        }
        #expect(fixture.memory.partialCount == 0)
    }

    @Test(arguments: [true, false]) func laterRemovalsRespectDelay(restarts: Bool) async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(3_000)))
        var queue = try await openWithCancelledSessions(at: "a", count: 1)
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 1)
        transport.acceptRequests()
        if restarts {
            await queue.shutdown()
            queue = try await fixture.open(transports: [transport])
            try await queue.start()
        }
        let gate = fixture.memory.gate("later", atByte: 4_000)
        let session = try await queue.enqueue(try fixture.upload("later", to: "a"))
        try await gate.reached()
        try await session.cancel(discarding: true)
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 1)
        #expect(try await queue.statistics().removalsDue == 2)
        fixture.clock.advance(by: .seconds(3_600))
        try await advanceUntilNoRemovalIsPending(queue)
        #expect(fixture.memory.partialCount == 0)
        await queue.shutdown()
    }

    /// After a restart, the queue must not use its own, longer delay.
    @Test func shortDelayOfServerStaysShort() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(2)))
        var queue = try await openWithCancelledSessions(at: "a", count: 1)
        await queue.waitUntilIdle()
        for (passed, requestCount) in [(1, 1), (2, 2)] {
            await queue.shutdown()
            fixture.clock.advance(by: .seconds(passed))
            queue = try await fixture.open(transports: [transport])
            try await queue.start()
            await queue.waitUntilIdle()
            #expect(transport.requestCount == requestCount)
        }
        await queue.shutdown()
    }

    @Test func waitUntilIdleReturnsDespiteHangingServer() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: true)
        let queue = try await openWithCancelledSessions(at: "a", count: 2)
        try await hung.wait()
        async let idle: Void = queue.waitUntilIdle()
        await fixture.clock.waitForSleep(of: .seconds(30))
        #expect(try await queue.statistics().removalsDue == 2)
        fixture.clock.advance(by: .seconds(30))
        await idle
        #expect(transport.requestCount == 1)
        let end = Task { await queue.shutdown() }
        await fixture.clock.waitForSleep(of: .seconds(5))
        fixture.clock.advance(by: .seconds(5))
        await end.value
    }

    @Test func stoppedQueueSendsNothing() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: true)
        let queue = try await openWithCancelledSessions(["a", "b", "c"], waitingFor: hung)
        try await queue.stopAndWait()
        await fixture.clock.waitForSleep(of: .seconds(120))
        fixture.clock.advance(by: .seconds(120))
        await queue.waitUntilContentRemoved()
        #expect(transport.requestCount == 1)
        #expect(fixture.memory.partialCount == 3)
        await queue.shutdown()
    }
}
