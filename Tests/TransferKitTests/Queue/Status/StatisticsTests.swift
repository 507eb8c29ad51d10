import Foundation
import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StatisticsTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    @Test func countsOnlyRunTimeAcrossRestarts() async throws {
        var queue = try await fixture.openWithAccounts()
        let first = fixture.memory.gate("1", atByte: 4_000)
        let second = fixture.memory.gate("1", atByte: 8_000)
        let id = try await queue.enqueue(try fixture.upload("1")).id
        fixture.clock.advance(by: .seconds(7))
        #expect(try await queue.status(of: id).statistics.secondsElapsed == 0)
        try await queue.start()
        try await first.reached()
        fixture.clock.advance(by: .seconds(10))
        #expect(try await queue.status(of: id).statistics.secondsElapsed == 10)
        #expect(try await queue.statistics().secondsElapsed == 10)
        await queue.shutdown()
        first.open()

        fixture.clock.advance(by: .seconds(100))
        queue = try await fixture.open()
        #expect(try await queue.status(of: id).statistics.secondsElapsed == 10)
        #expect(try await queue.status(of: id).statistics.averageRate == 400)
        #expect(try await queue.statistics().secondsElapsed == 10)
        #expect(try await queue.statistics().averageRate == 400)
        try await queue.start()
        try await second.reached()
        fixture.clock.advance(by: .seconds(6))
        var current = try await queue.status(of: id).statistics
        #expect(current.secondsElapsed == 16 && current.averageRate == 500)
        #expect(try await queue.statistics().averageRate == 500)
        second.open()
        await queue.waitUntilIdle()
        fixture.clock.advance(by: .seconds(50))
        current = try await queue.status(of: id).statistics
        #expect(current.secondsElapsed == 16 && current.averageRate == 625)
        let all = try await queue.statistics()
        #expect(all.secondsElapsed == 16 && all.averageRate == 625 && all.rate == nil && all.secondsRemaining == nil)
        // The bytes that a removed session sent still count towards the average rate.
        try await queue.remove(id)
        let rest = try await queue.statistics()
        #expect(rest.files == 0 && rest.bytesTotal == 0 && rest.averageRate == 625)
        await queue.shutdown()
    }

    @Test func measuresPhasesOfTransfer() async throws {
        let transport = TimedTransport(clock: fixture.clock)
        var queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [Endpoint(transport: transport.id, address: "timed://host/")]))
        let id = try await queue.enqueue(try fixture.upload("1", options: SessionOptions(retry: RetryPolicy(maximumAttempts: 1)))).id
        try await queue.start()
        await queue.waitUntilIdle()
        var expected = TransferTimes()
        expected.secondsConnecting = 2
        expected.secondsTransferring = 3
        expected.secondsRateLimited = 4
        expected.secondsAwaitingResponse = 5
        let times = try await queue.status(of: id).times
        #expect(times == expected, "\(String(describing: times))")
        #expect(try await queue.sessions().first?.times == nil)
        await queue.shutdown()

        queue = try await fixture.open(transports: [transport])
        #expect(try await queue.status(of: id).times == expected)
        try await queue.retry(id)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.status(of: id).times?.total == expected.total * 2)
        _ = try await queue.stopAndWait()
        // Running the session again sets its times to zero.
        try await queue.run(id, again: true)
        #expect(try await queue.status(of: id).times?.total == 0)
        await queue.shutdown()
    }

    @Test func addsUpAllSessions() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.failNext(with: TransferError(.permanent, .rejected, "No."), for: "2")
        let gate = fixture.memory.gate("4", atByte: 3_000)
        try await queue.enqueue(try fixture.upload("1", "2", options: SessionOptions(filesInFlight: 1)))
        try await queue.enqueue(try fixture.upload("3"), held: true)
        try await queue.enqueue(try fixture.upload("4", "5", options: SessionOptions(filesInFlight: 1)))
        try await queue.enqueue(try fixture.upload("6", size: 500, to: "b"))
        try await queue.start()
        try await gate.reached()
        let all = try await queue.statistics()
        #expect(all.files == 6 && all.filesDone == 1 && all.filesFailed == 1)
        #expect(all.bytesTotal == 50_500 && all.bytesDone == 13_000 && all.bytesSent == 13_000)
        #expect(all.bytesRemaining == 17_500, "held sessions and failed files are not included")
        gate.open()
        await queue.waitUntilIdle()
        let end = try await queue.statistics()
        #expect(end.filesDone == 4 && end.bytesDone == 30_500 && end.bytesRemaining == 0 && end.rate == nil)
        await queue.shutdown()
    }

    /// Some servers confirm bytes only at the end of a request.
    @Test(arguments: [false, true]) func keepsSentBytesWhilePausedOrHeld(_ isHeld: Bool) async throws {
        let fixture = try QueueFixture(memory: MemoryTransport(chunkSize: 1_000, chunksPerCheckpoint: 4))
        let queue = try await fixture.openWithAccounts()
        let gate = fixture.memory.gate("1", atByte: 6_000)
        let id = try await queue.enqueue(try fixture.upload("1")).id
        try await queue.start()
        try await gate.reached()
        let before = try await queue.statistics()
        #expect(before.bytesSent == 6_000 && before.bytesDone == 4_000 && before.bytesRemaining == 4_000)
        if isHeld { _ = try await queue.hold(id) } else { _ = try await queue.pause(id) }
        gate.open()
        while try await queue.status(of: id).state == .running { await Task.yield() }
        let paused = try await queue.statistics()
        #expect(paused.bytesSent == 6_000 && paused.bytesDone == 4_000 && paused.bytesRemaining == 0)
        #expect(try await queue.status(of: id).statistics.bytesSent == 6_000)
        if isHeld { _ = try await queue.release(id) } else { _ = try await queue.resume(id) }
        await queue.waitUntilIdle()
        let end = try await queue.statistics()
        #expect(end.bytesSent == 10_000 && end.bytesDone == 10_000 && end.bytesTotal == 10_000)
        await queue.shutdown()
    }
}

/// A transport that advances the clock in each phase of a transfer. The first upload fails after its last byte.
private struct TimedTransport: Transport {
    let id = TransportID(rawValue: "timed")
    let clock: TestClock
    let attempts = Locked(0)

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        clock.advance(by: .seconds(2))
        reporter.report(sent: 1_000, confirmed: 0)
        clock.advance(by: .seconds(3))
        _ = reporter.allowance(upTo: 0)
        clock.advance(by: .seconds(4))
        reporter.report(sent: 10_000, confirmed: 0)
        clock.advance(by: .seconds(5))
        let number = attempts.withLock { attempts in
            attempts += 1
            return attempts
        }
        guard number > 1 else { throw TransferError(.permanent, .rejected, "No.") }
        return TransferReceipt(bytes: 10_000)
    }

    func shutdown() async {}
}
