import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct OptionRangeTests {
    @Test(arguments: [
        SessionOptions(rateLimit: 0), SessionOptions(rateLimit: -1), SessionOptions(filesInFlight: 0), SessionOptions(filesInFlight: 65),
        SessionOptions(stallTimeout: .zero), SessionOptions(responseTimeout: .seconds(-1)), SessionOptions(segmentsPerFile: 0),
        SessionOptions(chunkSize: 0), SessionOptions(retry: RetryPolicy(maximumAttempts: 0)),
        SessionOptions(expectedChecksum: "sha256:00"), SessionOptions(expectedChecksum: "crc:00"),
        SessionOptions(expectedChecksum: "md5:" + String(repeating: "0", count: 32)),
        SessionOptions(retry: RetryPolicy(base: .seconds(-1))), SessionOptions(retry: RetryPolicy(maximumDelay: .seconds(-1))),
        SessionOptions(stallTimeout: .seconds(Int64.max) * 2), SessionOptions(responseTimeout: .seconds(Int64.max) * 18),
        SessionOptions(retry: RetryPolicy(base: .seconds(Int64.max), maximumDelay: .seconds(Int64.max))),
    ])
    func rejectsInvalidSessionOptions(options: SessionOptions) async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(try fixture.upload("1", options: options)) }
        #expect(error?.code == .invalidRequest)
        #expect(await queue.status().sessions == 0)
        await queue.shutdown()
    }

    @Test(arguments: [
        SessionUpdate(rateLimit: .bytesPerSecond(0)), SessionUpdate(rateLimit: .bytesPerSecond(-1)),
        SessionUpdate(retry: RetryPolicy(maximumAttempts: 0)), SessionUpdate(context: .set(Data("{".utf8))),
    ])
    func rejectsInvalidUpdates(update: SessionUpdate) async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try fixture.upload("1"))
        let before = try await session.status
        for call in [{ try await queue.update(session.id, update) }, { _ = try await queue.apply(.update(update), to: .all) }] {
            let error = await #expect(throws: QueueError.self) { try await call() }
            #expect(error?.code == .invalidRequest)
        }
        #expect(try await session.status == before)
        await queue.shutdown()
    }

    @Test(arguments: [TimeInterval.infinity, -.infinity, .nan, 1e300]) func rejectsInvalidStartTimes(time: TimeInterval) async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        var request = try fixture.upload("1")
        request.notBefore = Date(timeIntervalSince1970: time)
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
        #expect(error?.code == .invalidRequest)
        request.notBefore = .distantFuture
        let session = try await queue.enqueue(request)
        try await queue.start()
        _ = try await queue.forecast()
        #expect(try await session.status.why == .notBefore(.distantFuture))
        await queue.shutdown()
    }

    @Test func rejectsInvalidContext() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        var request = try fixture.upload("1")
        request.context = Data("not json".utf8)
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
        #expect(error?.code == .invalidRequest)
        await queue.shutdown()
    }

    /// Apps use the largest and smallest values to mean "as long as possible" or "all".
    @Test func acceptsExtremeValues() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.open(changeLogLimit: .max)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let longest = Duration.seconds(Int64.max)
        let session = try await queue.enqueue(
            try fixture.upload("1", options: SessionOptions(stallTimeout: longest, responseTimeout: longest)))
        #expect(try await queue.items(of: session.id, from: .min, limit: 5).count == 1)
        #expect(try await queue.items(of: session.id, from: .max, limit: 5).isEmpty)
        try await queue.start()
        try await queue.stop(.drain, deadline: longest)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await session.status.state == .completed)
        #expect(try await queue.stopAndWait(.drain, deadline: longest) == .drained)
        await queue.shutdown()
    }

    @Test func rejectsInvalidAccount() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.open()
        let account = Account("a", endpoints: [fixture.memory.endpoint(host: "a")], fallbackAfter: .seconds(-1))
        let error = await #expect(throws: QueueError.self) { try await queue.save(account) }
        #expect(error?.code == .invalidAccount)
        await queue.shutdown()
    }

    @Test func rejectsInvalidEndpointSettings() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.open(transports: [ValidatingTransport(memory: fixture.memory)])
        var endpoint = fixture.memory.endpoint(host: "a")
        try await queue.save(Account("a", endpoints: [endpoint]))
        endpoint.settings["spede"] = "1"
        let error = await #expect(throws: QueueError.self) { try await queue.save(Account("a", endpoints: [endpoint])) }
        #expect(error?.code == .invalidAccount && error?.message.contains("spede") == true)
        #expect(await queue.accounts().first?.account.endpoints.first?.settings == [:])
        // A process that lacks a transport does not validate the settings of the transport's endpoints.
        endpoint.transport = "elsewhere"
        try await queue.save(Account("a", endpoints: [endpoint]))
        await queue.shutdown()
    }

    @Test func callsAfterShutdownThrow() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try fixture.upload("1"))
        await queue.shutdown()
        for call in [{ _ = try await queue.sessions() }, { _ = try await queue.items(of: session.id) }] {
            let error = await #expect(throws: QueueError.self) { try await call() }
            #expect(error?.code == .shutDown)
        }
    }
}

/// A transport that accepts no endpoint settings.
private struct ValidatingTransport: EndpointValidating {
    let id = TransportID(rawValue: "memory")
    let memory: MemoryTransport

    func validate(_ endpoint: Endpoint) throws(TransferError) {
        guard let name = endpoint.settings.keys.first else { return }
        throw TransferError(.permanent, .invalidEndpoint, "There is no setting named \(name).")
    }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try await memory.perform(attempt, reporting: reporter)
    }

    func shutdown() async { await memory.shutdown() }
}
