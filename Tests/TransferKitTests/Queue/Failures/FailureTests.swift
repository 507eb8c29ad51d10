import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct FailureTests {
    private let fixture: QueueFixture
    private var memory: MemoryTransport { fixture.memory }
    private let connectionLoss = TransferError(.transient, .connectionLost, "The connection broke.")

    init() throws {
        fixture = try QueueFixture()
    }

    @Test func shortDelayKeepsSlot() async throws {
        let queue = try await fixture.openWithAccounts()
        memory.faults.append(.fail(connectionLoss))
        let first = try await queue.enqueue(try fixture.upload("1"))
        try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        #expect(try await first.status.state == .running)
        fixture.clock.advance(by: .seconds(1))
        await queue.waitUntilIdle()
        #expect(memory.attempts.map(\.path.description) == ["1", "1", "2"])
        #expect(memory.attempts.map(\.number) == [1, 2, 1])
        await queue.shutdown()
    }

    @Test func longDelayLetsOtherSessionsRun() async throws {
        let queue = try await fixture.openWithAccounts()
        memory.faults.append(.fail(TransferError(.transient, .serverError, "The server is busy.", retryAfter: .seconds(30))))
        let first = try await queue.enqueue(try fixture.upload("1"))
        let second = try await queue.enqueue(try fixture.upload("2", to: "b"))
        let third = try await queue.enqueue(try fixture.upload("3"))
        try await queue.start()
        #expect(try await second.value.state == .completed)
        #expect(try await first.status.state == .waiting)
        guard case .endpointsUnavailable = try await third.status.why else { throw connectionLoss }
        guard case .retry = try await first.status.why else { throw connectionLoss }
        #expect(try await first.status.error?.code == .serverError)
        let unavailable = try #require(await queue.account("a")?.unavailableEndpoints.first)
        #expect(
            unavailable.location == memory.endpoint(host: "a").location && unavailable.nextAttempt == Date(timeIntervalSince1970: 1_000_030)
        )
        #expect(await queue.account("b")?.unavailableEndpoints == [])
        let status = await queue.status()
        #expect(status.scheduled == 2 && !status.isIdle, "the third session waits for the host")
        #expect(status.nextDue == Date(timeIntervalSince1970: 1_000_030))
        await queue.waitUntilIdle(scheduled: false)
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        #expect(try await first.value.state == .completed)
        #expect(try await third.value.state == .completed)
        #expect(memory.attempts.map(\.path.description) == ["1", "2", "1", "3"], "the queue skips all sessions of the busy host")
        await queue.shutdown()
    }

    @Test func wakesEachWaitingSession() async throws {
        let queue = try await fixture.openWithAccounts()
        let delays = [("1", 30), ("2", 10), ("3", 20)]
        for (name, _) in delays { memory.failNext(with: TransferError(.transient, .serverError, "The server is busy."), for: name) }
        let sessions = try await queue.enqueue(
            delays.map { try fixture.upload($0, options: SessionOptions(retry: RetryPolicy(base: .seconds($1)))) })
        try await queue.start()
        await queue.waitUntilIdle(scheduled: false)
        for (index, session) in [(1, sessions[1]), (2, sessions[2]), (0, sessions[0])] {
            await fixture.clock.waitForSleep(of: .seconds(10))
            fixture.clock.advance(by: .seconds(10))
            #expect(try await session.value.index == index)
        }
        await queue.waitUntilIdle()
        await queue.shutdown()
    }

    @Test func limitsAttemptsIfOffsetDecreases() async throws {
        let forgetful = ForgetfulTransport()
        let queue = try await fixture.open(transports: [forgetful])
        try await queue.save(Account("a", endpoints: [Endpoint(transport: "forgetful", address: "forgetful://host/")]))
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 4))
        let session = try await queue.enqueue(try fixture.upload("1", options: options))
        try await queue.start()
        #expect(try await #require(throws: TransferError.self) { try await session.value }.code == .serverError)
        await queue.shutdown()
    }

    @Test func editedAccountAppliesToNextAttempt() async throws {
        let queue = try await fixture.openWithAccounts()
        memory.failNext(with: connectionLoss, for: "1")
        let session = try await queue.enqueue(try fixture.upload("1", "2", options: SessionOptions(filesInFlight: 1)))
        try await queue.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        try await queue.save(Account("a", endpoints: [memory.endpoint(host: "moved")]))
        fixture.clock.advance(by: .seconds(1))
        _ = try await session.value
        #expect(memory.attempts.map(\.endpoint.address) == ["memory://a/", "memory://moved/", "memory://moved/"])
        await queue.shutdown()
    }

    @Test func limitsAttempts() async throws {
        let queue = try await fixture.openWithAccounts()
        memory.failNext(3, with: connectionLoss)
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 3))
        let session = try await queue.enqueue(try fixture.upload("1", options: options))
        try await queue.start()
        #expect(try await #require(throws: TransferError.self) { try await session.value } == connectionLoss)
        #expect(memory.attempts.count == 3)
        #expect(try await session.status.statistics.filesFailed == 1)
        await queue.shutdown()
    }

    @Test func progressResetsAttempts() async throws {
        let queue = try await fixture.openWithAccounts()
        for _ in 0..<6 { memory.faults.append(.cut(afterBytes: 1_500)) }
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 2))
        let session = try await queue.enqueue(try fixture.upload("1", options: options))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(memory.attempts.count == 7)
        #expect(memory.contents(of: "1") == (try fixture.content("1")))
        await queue.shutdown()
    }

    @Test func retriesHangingAttempt() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("1", atByte: 5_000)
        let options = SessionOptions(retry: RetryPolicy(base: .zero), stallTimeout: .seconds(60), responseTimeout: .seconds(300))
        let session = try await queue.enqueue(try fixture.upload("1", options: options))
        let events = queue.events
        try await queue.start()
        try await gate.reached()
        let stall = Task { await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } } }
        // The queue samples the progress ten times a second. The stall timeout starts with the first sample.
        for _ in 0..<602 {
            await fixture.clock.waitForSleep(of: .milliseconds(100))
            fixture.clock.advance(by: .milliseconds(100))
        }
        #expect(await stall.value?.code == .stalled)
        gate.open()
        #expect(try await session.value.state == .completed)
        #expect(memory.attempts.map(\.startOffset) == [0, 5_000])
        await queue.shutdown()
    }

    @Test(arguments: [false, true]) func retryByUserIgnoresDelayOfBusyServer(_ unblocks: Bool) async throws {
        let queue = try await fixture.openWithAccounts()
        memory.failNext(with: TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(3_000)), for: "1")
        let first = try await queue.enqueue(try fixture.upload("1"))
        let second = try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        await queue.waitUntilIdle(scheduled: false)
        #expect(memory.attempts.count == 1)
        if unblocks { try await queue.unblockAccount("a") } else { try await second.run() }
        #expect(try await second.value.state == .completed)
        // Unblocking the account also ends the delays of its sessions, so the first session needs no other call.
        if !unblocks { try await first.run() }
        #expect(try await first.value.state == .completed)
        await queue.shutdown()
    }

    /// While the machine is suspended for an hour, no bytes can move.
    @Test func suspensionDoesNotCountAsStall() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("1", atByte: 5_000)
        let options = SessionOptions(retry: RetryPolicy(base: .zero), stallTimeout: .seconds(60), responseTimeout: .seconds(300))
        let session = try await queue.enqueue(try fixture.upload("1", options: options))
        try await queue.start()
        try await gate.reached()
        for duration in [Duration.seconds(1), .seconds(3_600), .seconds(1)] {
            await fixture.clock.waitForSleep(of: .milliseconds(100))
            fixture.clock.advance(by: duration)
        }
        await fixture.clock.waitForSleep(of: .milliseconds(100))
        gate.open()
        #expect(try await session.value.state == .completed)
        #expect(memory.attempts.map(\.startOffset) == [0])
        await queue.shutdown()
    }

    @Test func restartsFileIfServerLostUpload() async throws {
        let queue = try await fixture.openWithAccounts()
        memory.faults.append(.cut(afterBytes: 5_000))
        memory.faults.append(.forget)
        let options = SessionOptions(retry: RetryPolicy(base: .zero))
        let session = try await queue.enqueue(try fixture.upload("1", options: options))
        let events = queue.events
        try await queue.start()
        #expect(try await session.value.state == .completed)
        let reason = await events.first { (event: QueueEvent.Kind) -> TransferError? in
            if case .itemRestarted(_, _, let error) = event { error } else { nil }
        }
        #expect(reason?.failureClass == .resumeLost)
        #expect(memory.attempts.map(\.transferID) == ["\(session.id)-0-1", "\(session.id)-0-1", "\(session.id)-0-2"])
        #expect(memory.contents(of: "1") == (try fixture.content("1")))
        #expect(try await session.status.statistics.bytesDone == 10_000)
        await queue.shutdown()
    }

    @Test func limitsRestartsAfterLostUploads() async throws {
        let queue = try await fixture.openWithAccounts()
        let gone = TransferError(.resumeLost, .uploadGone, "The upload is gone.")
        memory.failNext(2, with: gone)
        let session = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        #expect(try await #require(throws: TransferError.self) { try await session.value } == gone)
        await queue.shutdown()
    }

    @Test func neverMixesContentsOfChangedFile() async throws {
        let queue = try await fixture.openWithAccounts()
        memory.faults.append(.cut(afterBytes: 5_000))
        let session = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        _ = try fixture.folder.file("1", Data(repeating: 9, count: 10_001))
        fixture.clock.advance(by: .seconds(1))
        let error = try await #require(throws: TransferError.self) { try await session.value }
        #expect(error.failureClass == .sourceChanged, "\(error)")
        #expect(error.message.contains("10000") && error.message.contains("10001"))
        #expect(memory.contents(of: "1") == nil)
        await queue.shutdown()
    }

    @Test func failsOnlyVanishedFile() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try fixture.upload("1", "2", "3"))
        try FileManager.default.removeItem(atPath: fixture.folder.path.appending("2").string)
        try await queue.start()
        let error = try await #require(throws: TransferError.self) { try await session.value }
        #expect(error.code == .itemsFailed && error.message.contains("1 of 3"))
        #expect(Set(memory.completePaths.map(\.description)) == ["1", "3"])
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.state) == [.completed, .failed, .completed])
        #expect(items[1].error?.code == .noSuchFile)
        await queue.shutdown()
    }

    @Test func firstFailedItemEndsSessionIfConfigured() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(
            try fixture.upload("1", "2", "3", options: SessionOptions(onItemFailure: .failSession, filesInFlight: 1)))
        try FileManager.default.removeItem(atPath: fixture.folder.path.appending("2").string)
        try await queue.start()
        #expect(try await #require(throws: TransferError.self) { try await session.value }.code == .noSuchFile)
        #expect(memory.completePaths.map(\.description) == ["1"])
        await queue.shutdown()
    }

    @Test func rejectedCredentialsBlockOnlyTheirAccount() async throws {
        let queue = try await fixture.openWithAccounts()
        let refused = TransferError(.credentials, .credentialsRejected, "The server refused the token.")
        memory.failNext(with: refused)
        let blocked = try await queue.enqueue(try fixture.upload("1"))
        let other = try await queue.enqueue(try fixture.upload("2", to: "b"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await other.status.state == .completed)
        #expect(try await blocked.status.why == .accountBlocked(refused))
        #expect(await queue.account("a")?.blockingError == refused)
        try await queue.unblockAccount("a")
        #expect(try await blocked.value.state == .completed)
        await queue.shutdown()
    }

    @Test func fallsBackFromUnreachableEndpoint() async throws {
        let queue = try await fixture.open()
        try await queue.save(Account("a", endpoints: [memory.endpoint(host: "down"), memory.endpoint(host: "up")]))
        memory.refuse(host: "down")
        let session = try await queue.enqueue(try fixture.upload("1", "2", options: SessionOptions(filesInFlight: 1)))
        try await queue.start()
        #expect(try await session.value.endpoint == "memory://up/")
        #expect(memory.contents(of: "1", at: "memory://up/") == (try fixture.content("1")))
        #expect(memory.attempts.map(\.endpoint.address) == ["memory://down/", "memory://up/", "memory://up/"])
        await queue.shutdown()
    }

    @Test func fullServerFailsOnlyOneSession() async throws {
        let queue = try await fixture.openWithAccounts()
        memory.failNext(with: TransferError(.remoteFull, .remoteFull, "The server is full."))
        let first = try await queue.enqueue(try fixture.upload("1", "2", options: SessionOptions(filesInFlight: 1)))
        let second = try await queue.enqueue(try fixture.upload("3"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await first.status.error?.code == .remoteFull)
        #expect(try await second.status.state == .completed)
        #expect(memory.completePaths.map(\.description) == ["3"])
        await queue.shutdown()
    }
}

/// A transport that confirms half of a file in the first attempt, and only a tenth of the file in all later attempts.
private final class ForgetfulTransport: Transport {
    let id: TransportID = "forgetful"
    private let attempts = Locked(0)

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let number = attempts.withLock { attempts in
            attempts += 1
            return attempts
        }
        let confirmed = try attempt.source.size / (number == 1 ? 2 : 10)
        try await reporter.save(Checkpoint(data: Data([1]), confirmed: confirmed))
        reporter.report(sent: confirmed, confirmed: confirmed)
        throw TransferError(.transient, .serverError, "The server failed.")
    }

    func shutdown() async {}
}
