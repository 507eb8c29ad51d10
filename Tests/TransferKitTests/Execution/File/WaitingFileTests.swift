import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct WaitingFileTests {
    private let busy = TransferError(.transient, .serverError, "The server is busy.", retryAfter: .seconds(30))

    @Test func startsDueFileWhenEndpointIsAvailableAgain() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10], options: SessionOptions(filesInFlight: 2))
        fixture.memory.failNext(with: busy, for: "1")
        let gate = fixture.memory.gate("2")
        let run = try await fixture.start()
        try await gate.reached()
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.unavailable.withLock { $0[fixture.endpoint("a")] = .zero }
        fixture.clock.advance(by: .seconds(30))
        for _ in 0..<3 {
            await fixture.clock.waitForSleep(of: .seconds(1))
            #expect(fixture.memory.attempts.count == 2)
            fixture.clock.advance(by: .seconds(1))
        }
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.unavailable.withLock { $0 = [:] }
        fixture.clock.advance(by: .seconds(1))
        #expect(try await fixture.memory.attemptsStarted(3).map(\.path.description) == ["1", "2", "1"], "the other file is in flight")
        gate.open()
        #expect(try await run.value?.hasSucceeded == true)
        await fixture.close()
    }

    @Test func nextRunKeepsRetryTime() async throws {
        let fixture = try await RunFixture(["1": 10])
        fixture.memory.failNext(with: busy)
        #expect(try await fixture.run()?.delay == .seconds(30))
        fixture.clock.advance(by: .seconds(10))
        guard case .backoff(.seconds(20), busy) = try await fixture.run() else { throw busy }
        #expect(fixture.memory.attempts.count == 1)
        fixture.clock.advance(by: .seconds(20))
        #expect(try await fixture.run()?.hasSucceeded == true)
        await fixture.close()
    }

    /// Starts a session whose first file fails and waits 100 s for its retry. The second file waits at its gate.
    private func startWithFirstFileWaiting(
        _ fixture: QueueFixture, _ queue: TransferQueue, after error: TransferError = TransferError(.transient, .serverError, "Not now.")
    ) async throws -> (TransferSession, MemoryGate) {
        let options = SessionOptions(retry: RetryPolicy(base: .seconds(100)), filesInFlight: 2)
        fixture.memory.failNext(with: error, for: "1")
        let gate = fixture.memory.gate("2")
        let session = try await queue.enqueue(try fixture.upload("1", "2", options: options))
        try await queue.start()
        try await gate.reached()
        await fixture.clock.waitForSleep(of: .seconds(100))
        return (session, gate)
    }

    @Test func networkRecoveryDoesNotEndWaitOfFile() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let (session, gate) = try await startWithFirstFileWaiting(fixture, queue)
        try await queue.setNetworkCondition(.unavailable)
        try await queue.setNetworkCondition(.unconstrained)
        try await fixture.memory.attemptsStarted(3)
        await fixture.clock.waitForSleep(of: .seconds(100))
        gate.open()
        await queue.waitUntilIdle(scheduled: false)
        guard case .retry = try await session.status.why else { throw busy }
        #expect(try await session.status.error?.code == .serverError)
        fixture.clock.advance(by: .seconds(100))
        #expect(try await session.value.state == .completed)
        #expect(fixture.memory.attempts.map(\.path.description) == ["1", "2", "2", "1"])
        await queue.shutdown()
    }

    @Test func resumeCallEndsWaitOfFile() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let (session, gate) = try await startWithFirstFileWaiting(fixture, queue)
        try await session.pause()
        try await session.resume()
        gate.open()
        #expect(try await session.value.state == .completed)
        #expect(fixture.memory.attempts.map(\.path.description).sorted() == ["1", "1", "2", "2"])
        await queue.shutdown()
    }

    private enum Call: CaseIterable {
        case run, retryEndpoints, unblockAccount
    }

    @Test(arguments: Call.allCases, [nil, Duration.seconds(100)])
    private func callEndsWaitOfFileInRunningSession(_ call: Call, retryAfter: Duration?) async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let error = TransferError(.transient, .serverError, "Not now.", retryAfter: retryAfter)
        let (session, gate) = try await startWithFirstFileWaiting(fixture, queue, after: error)
        #expect(fixture.memory.attempts.count == 2)
        switch call {
        case .run: try await session.run()
        case .retryEndpoints: try await queue.retryEndpoints(of: "a")
        case .unblockAccount: try await queue.unblockAccount("a")
        }
        #expect(try await fixture.memory.attemptsStarted(3).map(\.path.description) == ["1", "2", "1"])
        gate.open()
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

    @Test func runCallEndsWaitOfFile() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let (session, gate) = try await startWithFirstFileWaiting(fixture, queue)
        gate.open()
        await queue.waitUntilIdle(scheduled: false)
        try await session.run()
        #expect(try await session.value.state == .completed)
        #expect(fixture.memory.attempts.map(\.path.description) == ["1", "2", "1"])
        await queue.shutdown()
    }

    @Test func fileWaitsForBusyHost() async throws {
        let fixture = try await RunFixture(["1": 10])
        fixture.memory.failNext(with: busy)
        // Five seconds pass between the failure of the attempt and the computation of the host's back-off.
        fixture.onEvent.withLock {
            $0 = { [clock = fixture.clock] in if case .hostBusy = $0 { clock.advance(by: .seconds(5)) } }
        }
        #expect(try await fixture.run()?.delay == .seconds(30))
        await fixture.close()
    }

    /// A run reads `smallFilesAhead` before each file.
    private struct WatchedTransport: Transport {
        let id = TransportID(rawValue: "memory")
        let memory: MemoryTransport
        let limitRead: @Sendable () -> Void

        var smallFilesInFlight: Int { memory.smallFilesInFlight }
        var smallFilesAhead: Int {
            limitRead()
            return memory.smallFilesAhead
        }

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            try await memory.perform(attempt, reporting: reporter)
        }

        func shutdown() async {}
    }

    /// The checkpoint of the first file is already stored, so the file's second attempt needs no preparation, and starts while the preparation of the
    /// third file is delayed.
    @Test(.timeLimit(.minutes(10))) func startsDueFileWhileOtherFileIsPrepared() async throws {
        let count = Locked(0)
        let (reads, read) = AsyncStream.makeStream(of: Int.self)
        let memory = MemoryTransport(chunkSize: 1_000)
        let transport = WatchedTransport(memory: memory) {
            read.yield(
                count.withLock { count in
                    count += 1
                    return count
                })
        }
        let fixture = try await RunFixture(
            ["1": 10, "2": 10, "3": 10], .download, options: SessionOptions(filesInFlight: 2), memory: memory, transport: transport)
        let (prepared, prepare) = AsyncStream.makeStream(of: Void.self)
        let (responses, respond) = AsyncStream.makeStream(of: Void.self)
        fixture.delay.withLock {
            $0 = { report in
                guard case .file(2, .checkpoint) = report else { return nil }
                prepare.yield()
                return { for await _ in responses { break } }
            }
        }
        memory.failNext(with: busy, for: "1")
        let gate = memory.gate("2")
        let run = try await fixture.start()
        try await gate.reached()
        for await _ in prepared { break }
        let before = count.withLock { $0 }
        gate.open()
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        for await count in reads where count > before { break }
        respond.finish()
        #expect(try await run.value?.hasSucceeded == true)
        #expect(memory.attempts.map(\.path.description).sorted() == ["1", "1", "2", "3"])
        await fixture.close()
    }
}
