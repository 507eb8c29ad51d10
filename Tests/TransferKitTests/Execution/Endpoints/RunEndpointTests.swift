import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RunEndpointTests {
    private let oneFileInFlight = SessionOptions(filesInFlight: 1)

    private func hosts(_ fixture: RunFixture) -> [String] {
        fixture.memory.attempts.map { $0.endpoint.address.split(separator: "/").last.map(String.init) ?? "" }
    }

    @Test func fileWithoutSentBytesMovesToNextEndpointImmediately() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10, "3": 10], hosts: ["down", "up"], options: oneFileInFlight)
        fixture.memory.refuse(host: "down")
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(hosts(fixture) == ["down", "up", "up", "up"])
        #expect(
            fixture.eventNames == [
                "endpointFailed", "attemptFailed", "endpointChanged", "connected", "endpointWorks", "completed", "completed", "completed",
                "ended",
            ])
        await fixture.close()
    }

    @Test func retriesFromFirstEndpoint() async throws {
        let fixture = try await RunFixture(["1": 10], hosts: ["x", "y"], options: oneFileInFlight)
        for host in ["x", "y"] { fixture.memory.refuse(host: host) }
        let run = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.memory.accept(host: "x")
        fixture.clock.advance(by: .seconds(40))
        #expect(try await run.value?.hasSucceeded == true)
        #expect(hosts(fixture) == ["x", "y", "x"])
        #expect(fixture.memory.attempts.map(\.number) == [1, 2, 3])
        await fixture.close()
    }

    @Test func allFilesWaitForUnreachableEndpoints() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10, "3": 10, "4": 10], hosts: ["x", "y"], options: oneFileInFlight)
        for host in ["x", "y"] { fixture.memory.refuse(host: host) }
        let first = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await first.value?.delay == .seconds(2))
        #expect(hosts(fixture) == ["x", "y", "x", "y"])
        #expect(fixture.eventNames.count { $0 == "endpointChanged" } == 3)
        fixture.memory.accept(host: "y")
        fixture.clock.advance(by: .seconds(2))
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(hosts(fixture) == ["x", "y", "x", "y", "x", "y", "y", "y", "y"])
        await fixture.close()
    }

    @Test func allFilesCompleteOnceEndpointsRespondAgain() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10, "3": 10], hosts: ["x", "y"], options: SessionOptions(filesInFlight: 2))
        for host in ["x", "y"] { fixture.memory.refuse(host: host) }
        let gate = fixture.memory.gate("2")
        let run = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        for host in ["x", "y"] { fixture.memory.accept(host: host) }
        fixture.clock.advance(by: .seconds(1))
        try await gate.reached()
        gate.open()
        #expect(try await run.value?.hasSucceeded == true)
        #expect(fixture.memory.completePaths.map(\.description).sorted() == ["1", "2", "3"])
        await fixture.close()
    }

    @Test func tryingAllEndpointsCountsAsOneAttempt() async throws {
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 3))
        let fixture = try await RunFixture(["1": 10], hosts: ["x", "y"], options: options)
        let other = TransferError(.unreachable, .notThisProtocol, "Another service responds here.")
        fixture.memory.failNext(6, with: other)
        #expect(try await fixture.run()?.failure == other)
        #expect(hosts(fixture) == ["x", "y", "x", "y", "x", "y"], "trying each endpoint once counts as a single attempt")
        await fixture.close()
    }

    @Test func unreachableServerUsesNoAttempts() async throws {
        let retry = RetryPolicy(base: .seconds(2), maximumAttempts: 1, giveUpAfter: .seconds(20))
        let fixture = try await RunFixture(["1": 10, "2": 10], options: SessionOptions(retry: retry, filesInFlight: 1))
        fixture.memory.refuse(host: "a")
        // The runs begin at 0, 2, 6 and 14 s.
        for seconds in [2, 4, 8] {
            #expect(try await fixture.run()?.delay == .seconds(seconds))
            fixture.clock.advance(by: .seconds(seconds))
        }
        #expect(try await fixture.run()?.delay == .seconds(10))
        fixture.clock.advance(by: .seconds(10))
        #expect(try await fixture.run()?.failure?.code == .connectionRefused, "the session has waited for 20 s")
        await fixture.close()
    }

    @Test func fileMovesAfterAllAttemptsAtOneEndpoint() async throws {
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 3))
        let broken = TransferError(.transient, .serverError, "The server failed.")
        var fixture = try await RunFixture(["1": 10], hosts: ["x", "y"], options: options)
        fixture.memory.failNext(5, with: broken)
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(hosts(fixture) == ["x", "x", "x", "y", "y", "y"])
        await fixture.close()

        fixture = try await RunFixture(["1": 10], hosts: ["x", "y"], options: options)
        fixture.memory.failNext(6, with: broken)
        #expect(try await fixture.run()?.failure == broken)
        #expect(hosts(fixture) == ["x", "x", "x", "y", "y", "y"], "the file does not return to the first endpoint")
        await fixture.close()
    }

    @Test func partlySentFileMovesAfterAllAttempts() async throws {
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 2))
        let fixture = try await RunFixture(["1": 5_000], hosts: ["x", "y"], options: options)
        fixture.memory.faults.append(.cut(afterBytes: 3_000))
        fixture.memory.faults.append(.fail(TransferError(.transient, .serverError, "The server failed.")))
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(hosts(fixture) == ["x", "x", "y"])
        #expect(fixture.memory.contents(of: "1", at: "memory://y/") == (try fixture.content("1")))
        await fixture.close()
    }

    @Test func partlySentFileLeavesUnreachableEndpointAfterMinute() async throws {
        let fixture = try await RunFixture(["1": 5_000], hosts: ["near", "away"], options: oneFileInFlight)
        fixture.memory.faults.append(.cut(afterBytes: 3_500))
        let gate = fixture.memory.gate("1", atByte: 3_000)
        let first = try await fixture.start()
        try await gate.reached()
        fixture.memory.refuse(host: "near")
        gate.open()
        // The file waits 1 s after the connection broke, then 1, 2, 4 and 8 s, and then 10 s five times. The tenth refusal is 65 s after
        // the first.
        await fixture.clock.waitForSleep(of: .seconds(1))
        let elsewhere = fixture.memory.gate("1", atByte: 1_000)
        fixture.clock.advance(by: .seconds(1))
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await first.value?.delay == .seconds(2))
        for seconds in [2, 4, 8, 10, 10, 10, 10] {
            fixture.clock.advance(by: .seconds(seconds))
            #expect(try await fixture.run()?.delay == .seconds(min(2 * seconds, 10)))
        }
        fixture.clock.advance(by: .seconds(10))
        let last = try await fixture.start()
        try await elsewhere.reached()
        #expect(hosts(fixture) == Array(repeating: "near", count: 11) + ["away"])
        #expect(fixture.memory.attempts.last?.checkpoint == nil && fixture.memory.attempts.last?.startOffset == 0)
        func storedOffset() async throws -> Int64? {
            try await fixture.store.checkpoint(session: 1, position: 0, endpoint: "memory://near/", generation: 1)?.checkpoint.confirmed
        }
        #expect(try await storedOffset() == 3_000, "the checkpoint is kept until the file completes elsewhere")
        #expect(fixture.liveRun.withLock { $0 }?.statistics(at: .zero).bytesDone == 3_000, "the statistics never decrease")
        elsewhere.open()
        #expect(try await last.value?.hasSucceeded == true)
        #expect(try await storedOffset() == nil)
        #expect(fixture.memory.contents(of: "1", at: "memory://away/") == (try fixture.content("1")))
        await fixture.close()
    }

    @Test func triesNextEndpointAfterRejectedCredentialsOnlyIfConfigured() async throws {
        let refused = TransferError(.credentials, .credentialsRejected, "Not you.")
        for fallsBack in [true, false] {
            let fixture = try await RunFixture(["1": 10], hosts: ["x", "y"], configure: { $0.fallsBackOnCredentials = fallsBack })
            fixture.memory.failNext(with: refused)
            switch try await fixture.run() {
            case .finished(nil, _): #expect(fallsBack && hosts(fixture) == ["x", "y"])
            case .accountBlocked(refused, let account): #expect(!fallsBack && account == fixture.account.withLock { $0 })
            default: Issue.record("unexpected outcome")
            }
            await fixture.close()
        }
    }

    @Test func forbiddenFileBlocksAccountOnlyBeforeFirstSuccess() async throws {
        let forbidden = TransferError(.credentials, .forbidden, "Not this.")
        var fixture = try await RunFixture(["1": 10, "2": 10, "3": 10], options: oneFileInFlight)
        fixture.memory.failNext(with: forbidden, for: "2")
        #expect(try await fixture.run()?.failure?.code == .itemsFailed)
        #expect(fixture.memory.completePaths.map(\.description) == ["1", "3"])
        await fixture.close()

        fixture = try await RunFixture(["1": 10, "2": 10], options: oneFileInFlight)
        fixture.memory.failNext(with: forbidden)
        guard case .accountBlocked = try await fixture.run() else { throw forbidden }
        await fixture.close()
    }

    @Test func blockedAccountEndsAllFiles() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10, "3": 10])
        let gates = ["1", "3"].map { fixture.memory.gate($0) }
        fixture.memory.failNext(with: TransferError(.trust, .serverNotTrusted, "Who are you?"), for: "2")
        guard case .accountBlocked = try await fixture.run() else { throw CancellationError() }
        #expect(fixture.memory.runningCount == 0)
        #expect(fixture.errors(of: 0).isEmpty)
        for gate in gates { gate.open() }
        await fixture.close()
    }

    @Test func unsupportedFileMovesToNextEndpoint() async throws {
        let unsupported = TransferError(.unsupported, .tooLarge, "Too large for us.")
        let fixture = try await RunFixture(["1": 10], hosts: ["x", "y"])
        fixture.memory.failNext(with: unsupported)
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(hosts(fixture) == ["x", "y"])
        await fixture.close()
        let alone = try await RunFixture(["1": 10], hosts: ["x"])
        alone.memory.failNext(with: unsupported)
        #expect(try await alone.run()?.failure == unsupported)
        await alone.close()
    }

    @Test func fileMovesAfterThreeInvalidResponses() async throws {
        let options = SessionOptions(retry: RetryPolicy(base: .zero), filesInFlight: 1)
        let fixture = try await RunFixture(["1": 10], hosts: ["x", "y"], options: options)
        fixture.memory.failNext(3, with: TransferError(.protocolViolation, .invalidResponse, "What?"))
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(hosts(fixture) == ["x", "x", "x", "y"])
        await fixture.close()
    }

    @Test func simultaneousFailuresCountOnce() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10, "3": 10])
        let gates = ["1", "2", "3"].map { fixture.memory.gate($0) }
        for name in ["1", "2", "3"] { fixture.memory.faults.append(.cut(afterBytes: 0), for: name) }
        let run = try await fixture.start()
        for gate in gates { try await gate.reached() }
        for gate in gates { gate.open() }
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await run.value?.hasSucceeded == true)
        #expect(fixture.eventNames.count { $0 == "endpointFailed" } == 1)
        await fixture.close()

        let refusing = RefusingTransport(count: 3)
        let down = try await RunFixture(["1": 10, "2": 10, "3": 10], transport: refusing)
        let together = try await down.start()
        await down.clock.waitForSleep(of: .seconds(1))
        await refusing.waitUntilAllStarted()
        down.cancelRun()
        _ = try await together.value
        #expect(down.eventNames.count { $0 == "endpointFailed" } == 1)
        await down.close()
    }

    @Test func runEndsWithoutAvailableEndpoint() async throws {
        let fixture = try await RunFixture(["1": 10], hosts: ["x", "y"])
        for host in ["x", "y"] { fixture.unavailable.withLock { $0[fixture.endpoint(host)] = .zero } }
        guard case .endpointsUnavailable = try await fixture.run() else { throw CancellationError() }
        #expect(fixture.memory.attempts.isEmpty)
        fixture.unavailable.withLock { $0[fixture.endpoint("y")] = nil }
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(hosts(fixture) == ["y"])
        await fixture.close()
    }

    @Test func partlySentFileWaitsForBusyHost() async throws {
        let fixture = try await RunFixture(["1": 5_000, "2": 10], hosts: ["x", "y"], options: oneFileInFlight)
        fixture.memory.faults.append(.cut(afterBytes: 3_000))
        let first = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.unavailable.withLock { $0[fixture.endpoint("x")] = .seconds(601) }
        fixture.clock.advance(by: .seconds(1))
        #expect(try await first.value?.delay == .seconds(600))
        #expect(hosts(fixture) == ["x", "y"], "the other file used the next endpoint")
        fixture.clock.advance(by: .seconds(600))
        fixture.unavailable.withLock { $0 = [:] }
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(fixture.memory.attempts.last?.endpoint == fixture.endpoint("x"))
        #expect(fixture.memory.attempts.last?.startOffset == 3_000 || fixture.memory.attempts.last?.startOffset == 2_000)
        await fixture.close()
    }

    @Test func partlySentFileEventuallyLeavesUnavailableEndpoint() async throws {
        let fixture = try await RunFixture(["1": 5_000], hosts: ["x", "y"], options: oneFileInFlight)
        fixture.memory.faults.append(.cut(afterBytes: 3_000))
        let first = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.unavailable.withLock { $0[fixture.endpoint("x")] = .zero }
        fixture.clock.advance(by: .seconds(1))
        #expect(try await first.value?.delay == .seconds(60))
        fixture.clock.advance(by: .seconds(60))
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(hosts(fixture) == ["x", "y"])
        await fixture.close()
    }

    /// The queue does not validate stored accounts, so a stored delay can have any value.
    @Test func partlySentFileWaitsForLargestFallbackDelay() async throws {
        let fixture = try await RunFixture(
            ["1": 5_000], hosts: ["x", "y"], options: oneFileInFlight, configure: { $0.fallbackAfter = .largest })
        fixture.memory.faults.append(.cut(afterBytes: 3_000))
        let run = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.unavailable.withLock { $0[fixture.endpoint("x")] = .zero }
        fixture.clock.advance(by: .seconds(1))
        #expect(try await run.value?.delay == .seconds(100 * 366 * 86_400))
        await fixture.close()
    }

    @Test func fullDiskEndsRunWithoutUsingAttempt() async throws {
        let options = SessionOptions(retry: RetryPolicy(maximumAttempts: 1))
        let fixture = try await RunFixture(["1": 10], options: options)
        fixture.memory.failNext(3, with: TransferError(.noSpace, .diskFull, "Full."))
        for _ in 0..<3 { guard case .noSpace = try await fixture.run() else { throw CancellationError() } }
        #expect(try await fixture.run()?.hasSucceeded == true)
        await fixture.close()
    }
}

/// A transport that fails `count` attempts at the same time, once all of them have started.
private final class RefusingTransport: Transport {
    let id: TransportID = "memory"
    private let remaining: Locked<Int>
    private let all = AsyncStream<Void>.makeStream()

    init(count: Int) {
        remaining = Locked(count)
    }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let isLast = remaining.withLock { remaining in
            remaining -= 1
            return remaining == 0
        }
        if isLast { all.continuation.finish() }
        await waitUntilAllStarted()
        throw TransferError(.unreachable, .connectionRefused, "No process is listening.")
    }

    func waitUntilAllStarted() async { for await _ in all.stream {} }
    func shutdown() async {}
}
