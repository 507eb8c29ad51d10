import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct EndpointStateTests {
    private let options = SessionOptions(retry: RetryPolicy(maximumDelay: .seconds(1)), filesInFlight: 2)
    private let broken = TransferError(.transient, .connectionLost, "The connection broke.")

    /// Transfers two files. The first file fails six times. Before each retry of the first file, a thousand bytes of the second file are
    /// sent.
    private func transferTwoFiles(_ memory: MemoryTransport, _ clock: TestClock, _ begin: () async throws -> Void) async throws {
        memory.failNext(6, with: broken, for: "1")
        let gates = (0...6).map { memory.gate("2", atByte: $0 * 1_000) }
        try await begin()
        for index in 0..<6 {
            try await gates[index].reached()
            await clock.waitForSleep(of: .seconds(1))
            gates[index].open()
            try await gates[index + 1].reached()
            clock.advance(by: .seconds(1))
        }
        try await memory.attemptsStarted(8)
        gates[6].open()
    }

    @Test func movedBytesResetFailures() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10_000], options: options)
        let run = Locked<Task<RunOutcome?, any Error>?>(nil)
        try await transferTwoFiles(fixture.memory, fixture.clock) {
            let task = try await fixture.start()
            run.withLock { $0 = task }
        }
        #expect(try await run.withLock { $0 }?.value?.hasSucceeded == true)
        let endpointEvents = fixture.eventNames.filter { $0.hasPrefix("endpoint") }
        #expect(
            endpointEvents == (0..<6).flatMap { _ in ["endpointFailed", "endpointWorks"] },
            "the run reports a working endpoint once per failure, not once per byte")
        await fixture.close()
    }

    @Test func bytesOfAnySessionResetFailures() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        try await queue.setMaxConcurrentSessions(2)
        let first = try await queue.enqueue(try fixture.upload("1", options: options))
        let second = try await queue.enqueue(try fixture.upload("2", options: options))
        try await transferTwoFiles(fixture.memory, fixture.clock) { try await queue.start() }
        #expect(try await first.value.state == .completed)
        #expect(try await second.value.state == .completed)
        #expect(fixture.memory.attempts.count == 8, "no endpoint was skipped")
        await queue.shutdown()
    }

    /// Network buffers hold less than 1 MiB. So once 1 MiB has been sent, the other sessions start, even if the server has confirmed nothing.
    @Test func probeEndsAfterUnconfirmedMebibyte() async throws {
        let memory = MemoryTransport(chunkSize: 1 << 20, chunksPerCheckpoint: 100)
        let fixture = try QueueFixture(memory: memory)
        let queue = try await fixture.openWithAccounts()
        try await queue.setMaxConcurrentSessions(5)
        // After one failure, a session waits for 2 s, which is longer than the 1 s for which a waiting session keeps its slot.
        let options = SessionOptions(retry: RetryPolicy(base: .seconds(2)))
        let first = try await queue.enqueue(try fixture.upload("1", size: 2 << 20, options: options))
        for number in 2...5 { try await queue.enqueue(try fixture.upload("\(number)", size: 10, options: options)) }
        let gates = [memory.gate("1", atByte: (1 << 20) - 1), memory.gate("1", atByte: 1 << 20)]
        memory.refuse(host: "a")
        try await queue.start()
        await queue.waitUntilIdle(scheduled: false)
        #expect(memory.attempts.count == 5, "the endpoint is unavailable after five failures")
        memory.accept(host: "a")
        try await queue.retryEndpoints(of: "a")

        try await gates[0].reached()
        #expect(try await queue.sessions().map(\.state) == [.running, .waiting, .waiting, .waiting, .waiting])
        gates[0].open()
        try await gates[1].reached()
        // The small files of the other sessions may already be complete.
        let states = try await queue.sessions().map(\.state)
        #expect(states.first == .running && !states.contains(.waiting))
        #expect(try await first.status.statistics.bytesDone == 0)
        gates[1].open()
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().allSatisfy { $0.state == .completed })
        await queue.shutdown()
    }

    @Test func authenticatedRequestResetsFailures() async throws {
        let transport = ServingTransport()
        let fixture = try await RunFixture(["1": 10], options: SessionOptions(retry: RetryPolicy(base: .zero)), transport: transport)
        let run = try await fixture.start()
        try await transport.served.wait()
        _ = try await fixture.mailbox.send(.tick)
        #expect(fixture.eventNames == ["endpointFailed", "attemptFailed", "endpointWorks"])
        transport.mayEnd.open()
        #expect(try await run.value?.hasSucceeded == true)
        await fixture.close()
    }

    /// A transport whose first attempt fails. The second attempt reports that the server has accepted the credentials, and then waits.
    private final class ServingTransport: Transport {
        let id: TransportID = "memory"
        let served = Latch()
        let mayEnd = Latch()

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            guard attempt.number > 1 else { throw TransferError(.transient, .connectionLost, "The connection broke.") }
            reporter.reportAuthenticatedResponse()
            served.open()
            try await mayEnd.wait()
            return TransferReceipt(bytes: 10)
        }

        func shutdown() async {}
    }
}
