import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct ListingFaultTests {
    private let fixture: DownloadFixture
    private var memory: MemoryTransport { fixture.memory }
    private var listings: [String] { memory.listings.map(\.description) }

    init() throws {
        fixture = try DownloadFixture()
    }

    private func request(_ path: String, options: SessionOptions = SessionOptions()) throws -> SessionRequest {
        try .download(items: [.remoteFolder(try RemotePath(path))], from: "a", to: fixture.target, options: options)
    }

    private func provide(_ count: Int, in folder: String) {
        for number in 0..<count { memory.provide(DownloadFixture.content(10, seed: number), as: "\(folder)/\(number)") }
    }

    private func files(in folder: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: fixture.target.appending(folder).string).count
    }

    @Test func countsFilesOnceIfListingRestarts() async throws {
        provide(120, in: "trip")
        memory.faults.append(.cut(afterBytes: 100), for: "trip")
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(request("trip", options: SessionOptions(retry: RetryPolicy(base: .zero))))
        try await queue.start()
        let status = try await session.value
        #expect(status.statistics.files == 120 && status.statistics.filesDone == 120)
        #expect(listings == ["trip", "trip"] && memory.attempts.count == 120)
        await queue.waitUntilIdle()
        #expect(try files(in: "trip") == 120)
        await queue.shutdown()
    }

    @Test func resumesListingAfterWait() async throws {
        provide(3, in: "trip")
        for name in ["a", "b", "c"] { provide(2, in: "trip/\(name)") }
        let busy = TransferError(.transient, .serverError, "The server is busy.", retryAfter: .seconds(30))
        memory.failNext(2, with: busy, for: "trip/b")
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(request("trip"))
        let events = queue.events
        try await queue.start()
        for _ in 0..<2 {
            let at = await events.first { if case .attemptFailed(_, _, let at) = $0 { at } else { nil } }
            #expect(at != nil)
            while try await session.status.state != .waiting { await Task.yield() }
            #expect(
                try await session.status.statistics.files == 6,
                "three files in trip, two in trip/a, and one placeholder for everything not listed yet")
            fixture.queue.clock.advance(by: .seconds(30))
            _ = await queue.status()
        }
        #expect(try await session.value.statistics.filesDone == 9)
        #expect(listings == ["trip", "trip/a", "trip/b", "trip/b", "trip/b", "trip/c"])
        await queue.shutdown()
    }

    @Test func failedFolderEndsSessionIfConfigured() async throws {
        for name in ["trip", "trip/a", "trip/z"] { provide(2, in: name) }
        memory.failNext(with: TransferError(.permanent, .forbidden, "You may not read it."), for: "trip/a")
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(request("trip", options: SessionOptions(onItemFailure: .failSession)))
        try await queue.start()
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.message == "You may not read it." && listings == ["trip", "trip/a"] && memory.attempts.isEmpty)
        try await queue.retry(session.id)
        let statistics = try await session.value.statistics
        #expect(statistics.files == 6 && statistics.filesDone == 6 && statistics.filesFailed == 0)
        #expect(listings == ["trip", "trip/a", "trip/z", "trip/a"])
        await queue.shutdown()
    }

    @Test func limitsAttemptsOfListing() async throws {
        provide(2, in: "trip")
        provide(2, in: "trip/broken")
        memory.failNext(20, with: TransferError(.transient, .serverError, "The server's disk failed."), for: "trip/broken")
        let queue = try await fixture.queue.openWithAccounts()
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 3))
        let session = try await queue.enqueue(request("trip", options: options))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        let status = try await session.status
        #expect(status.statistics.filesDone == 2 && status.statistics.filesFailed == 1)
        #expect(listings == ["trip"] + Array(repeating: "trip/broken", count: 3))
        await queue.shutdown()
    }

    @Test func rejectedCredentialsBlockAccount() async throws {
        provide(2, in: "trip")
        memory.failNext(with: TransferError(.credentials, .credentialsRejected, "Who are you?"), for: "trip")
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(request("trip"))
        let events = queue.events
        try await queue.start()
        let account = await events.first { if case .accountBlocked(let account, _) = $0 { account } else { nil } }
        #expect(account == "a")
        try await queue.unblockAccount("a")
        #expect(try await session.value.statistics.filesDone == 2)
        await queue.shutdown()
    }

    @Test func retriesHangingListing() async throws {
        provide(2, in: "trip")
        let gate = memory.gate("trip")
        let queue = try await fixture.queue.openWithAccounts()
        let options = SessionOptions(retry: RetryPolicy(base: .zero), stallTimeout: .seconds(6), responseTimeout: .seconds(6))
        let session = try await queue.enqueue(request("trip", options: options))
        let events = queue.events
        try await queue.start()
        try await gate.reached()
        let stall = Task { await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } } }
        // The queue samples the progress ten times a second. The stall timeout starts with the first sample.
        for _ in 0..<62 {
            await fixture.queue.clock.waitForSleep(of: .milliseconds(100))
            fixture.queue.clock.advance(by: .milliseconds(100))
        }
        #expect(await stall.value?.code == .stalled)
        gate.open()
        #expect(try await session.value.statistics.filesDone == 2)
        await queue.shutdown()
    }

    private func stallOptions(maximumAttempts: Int = 8) -> SessionOptions {
        SessionOptions(
            retry: RetryPolicy(base: .zero, maximumAttempts: maximumAttempts), stallTimeout: .seconds(6), responseTimeout: .seconds(6))
    }

    /// Advances the clock until an attempt fails, and returns the error. The session must be running, because the queue samples the progress only of
    /// running sessions.
    private func nextFailure(_ events: QueueEvents) async -> TransferError? {
        let failure = Locked<TransferError?>(nil)
        let reading = Task {
            let error = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
            failure.withLock { $0 = error }
        }
        // The queue samples the progress ten times a second.
        while failure.withLock({ $0 }) == nil {
            await fixture.queue.clock.waitForSleep(of: .milliseconds(100))
            fixture.queue.clock.advance(by: .milliseconds(100))
        }
        await reading.value
        return failure.withLock { $0 }
    }

    @Test func listsAtNextEndpointAfterSilence() async throws {
        let second = MemoryTransport(id: "second")
        for number in 0..<2 { second.provide(DownloadFixture.content(10, seed: number), as: "trip/\(number)") }
        // The first endpoint also refuses connections for files, so the listed files come from the second endpoint.
        memory.refuse(host: "a")
        let attempts = Locked(0)
        let silent = ScriptedLister(memory: memory) { _, _ in
            attempts.withLock { $0 += 1 }
            try await Latch().wait()
            return nil
        }
        let gate = second.gate("trip")
        let queue = try await fixture.queue.open(transports: [silent, second])
        try await queue.save(Account("a", endpoints: [memory.endpoint(host: "a"), second.endpoint(host: "b")]))
        let session = try await queue.enqueue(request("trip", options: stallOptions()))
        let events = queue.events
        try await queue.start()
        let failure = await nextFailure(events)
        try #require(failure?.code == .stalled && failure?.failureClass == .unreachable, "\(String(describing: failure))")
        try await gate.reached()
        gate.open()
        #expect(try await session.value.statistics.filesDone == 2)
        #expect(attempts.withLock { $0 } == 1 && second.listings.map(\.description) == ["trip"])
        await queue.shutdown()
    }

    @Test func silentEndpointUsesNoAttempts() async throws {
        provide(2, in: "trip")
        let gate = memory.gate("trip")
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(request("trip", options: stallOptions(maximumAttempts: 2)))
        let events = queue.events
        try await queue.start()
        for _ in 0..<3 {
            let failure = await nextFailure(events)
            try #require(failure?.code == .stalled && failure?.failureClass == .unreachable, "\(String(describing: failure))")
        }
        gate.open()
        #expect(try await session.value.statistics.filesDone == 2)
        #expect(listings == Array(repeating: "trip", count: 4))
        await queue.shutdown()
    }

    /// An endpoint that has sent entries does not count as down.
    @Test func stallAfterFirstEntriesIsTransient() async throws {
        let slow = ScriptedLister(memory: memory) { _, number in
            if number > 0 { try await Latch().wait() }
            return [RemoteEntry(name: Array("0".utf8), kind: .file(size: 10))]
        }
        let queue = try await fixture.queue.open(transports: [slow])
        try await queue.save(Account("a", endpoints: [memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(request("trip", options: stallOptions()))
        let events = queue.events
        try await queue.start()
        let failure = await nextFailure(events)
        #expect(failure?.code == .stalled && failure?.failureClass == .transient, "\(String(describing: failure))")
        try await queue.cancel(session.id)
        await queue.shutdown()
    }

    /// The size in a listing is only a hint.
    @Test func toleratesFileLargerThanListed() async throws {
        provide(2, in: "trip")
        let first = memory.gate("trip/0")
        let gates = [1_000, 2_000, 3_000].map { memory.gate("trip/1", atByte: $0) }
        let queue = try await fixture.queue.openWithAccounts()
        let options = SessionOptions(
            retry: RetryPolicy(base: .zero), stallTimeout: .seconds(6), responseTimeout: .seconds(6), filesInFlight: 1)
        let session = try await queue.enqueue(request("trip", options: options))
        try await queue.start()
        try await first.reached()
        let grown = DownloadFixture.content(5_000)
        memory.provide(grown, as: "trip/1", reportsSize: false)
        first.open()
        for gate in gates {
            try await gate.reached()
            for seconds in [1, 4] {
                await fixture.queue.clock.waitForSleep(of: .milliseconds(100))
                fixture.queue.clock.advance(by: .seconds(seconds))
            }
            await fixture.queue.clock.waitForSleep(of: .milliseconds(100))
            gate.open()
        }
        #expect(try await session.value.statistics.bytesDone == 5_010)
        #expect(memory.attempts.count == 2 && fixture.content("trip/1") == grown)
        await queue.shutdown()
    }

    @Test func acceptsFilesThatChangeAfterListing() async throws {
        provide(4, in: "trip")
        let gate = memory.gate("trip/0")
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(request("trip", options: SessionOptions(filesInFlight: 1)))
        let events = queue.events
        try await queue.start()
        try await gate.reached()
        let grown = DownloadFixture.content(5_000)
        memory.provide(grown, as: "trip/1")
        // Some servers do not report a size with the content.
        memory.provide(grown, as: "trip/2", reportsSize: false)
        memory.provide(grown, as: "trip/late")
        gate.open()
        let outcome = await events.first { kind -> String? in
            switch kind {
            case .completed: "completed"
            case .attemptFailed(_, let error, _): error.message
            default: nil
            }
        }
        try #require(outcome == "completed")
        let status = try await session.value
        #expect(status.statistics.filesDone == 4 && status.statistics.bytesDone == 10_020 && status.statistics.bytesTotal == 10_020)
        #expect(fixture.content("trip/1") == grown && fixture.content("trip/2") == grown && fixture.content("trip/late") == nil)
        await queue.shutdown()
    }
}
