import Foundation
import Locking
import Logging
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct EndpointQuestionTests {
    private actor Chooser: TransferQueueDelegate {
        private let choose: @Sendable (SessionID, [Endpoint]) async -> Endpoint?
        private(set) var requests: [(id: SessionID, endpoints: [Endpoint])] = []

        init(_ choose: @escaping @Sendable (SessionID, [Endpoint]) async -> Endpoint?) {
            self.choose = choose
        }

        func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {}

        func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) async -> Endpoint? {
            requests.append((session, endpoints))
            return await choose(session, endpoints)
        }
    }

    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private func open(_ chooser: Chooser, hosts: [String] = ["x", "y", "z"]) async throws -> TransferQueue {
        let queue = try await fixture.openWithAccounts()
        try await queue.save(Account("a", endpoints: hosts.map { fixture.memory.endpoint(host: $0) }))
        queue.setDelegate(chooser)
        return queue
    }

    private var hosts: [String] {
        fixture.memory.attempts.map { $0.endpoint.address.split(separator: "/").last.map(String.init) ?? "" }
    }

    private let oneFileInFlight = SessionOptions(filesInFlight: 1)

    @Test func delegateOverridesEndpointOrder() async throws {
        let chooser = Chooser { $1.last }
        let queue = try await open(chooser)
        let session = try await queue.enqueue(try fixture.upload("1", "2", options: oneFileInFlight))
        try await queue.enqueue(try fixture.upload("3", to: "b"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(hosts == ["z", "z", "b"])
        let requests = await chooser.requests
        #expect(
            requests.map(\.id) == [session.id],
            "one call for all files of the session, and none for the account with a single endpoint")
        #expect(requests.first?.endpoints == ["x", "y", "z"].map { fixture.memory.endpoint(host: $0) })
        await queue.shutdown()
    }

    @Test func queueChoosesIfDelegateReturnsNil() async throws {
        let queue = try await open(Chooser { _, _ in nil })
        try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(hosts == ["x"])
        await queue.shutdown()
    }

    @Test func ignoresUnofferedEndpointWithWarning() async throws {
        let warnings = Locked(0)
        let other = fixture.memory.endpoint(host: "elsewhere")
        let question = EndpointQuestion(logger: Logger(label: "test") { _ in CountingLog(warnings: warnings) }) { _ in other }
        let offered = ["x", "y"].map { fixture.memory.endpoint(host: $0) }
        #expect(try await question.choice(among: offered) == nil)
        #expect(try await question.choice(among: offered) == nil)
        #expect(warnings.withLock { $0 } == 1, "one warning, not one for each file")

        let queue = try await open(Chooser { _, _ in other })
        try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(hosts == ["x"])
        await queue.shutdown()
    }

    @Test func skipsUnreachableEndpoints() async throws {
        fixture.memory.refuse(host: "y")
        let chooser = Chooser { _, endpoints in endpoints[1] }
        let queue = try await open(chooser)
        try await queue.enqueue(try fixture.upload("1", "2", options: oneFileInFlight))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(hosts == ["y", "x", "x"])
        await queue.shutdown()
    }

    @Test func partlySentFileStaysAtEndpoint() async throws {
        let prefersLastEndpoint = Locked(false)
        let chooser = Chooser { _, endpoints in prefersLastEndpoint.withLock { $0 } ? endpoints.last : endpoints.first }
        let queue = try await open(chooser)
        let gate = fixture.memory.gate("1", atByte: 5_000)
        let session = try await queue.enqueue(try fixture.upload("1", "2", options: oneFileInFlight))
        try await queue.start()
        try await gate.reached()
        let events = queue.events
        try await queue.pause(session.id)
        prefersLastEndpoint.withLock { $0 = true }
        gate.open()
        _ = await events.first { if case .changed(_, .paused) = $0 { true } else { nil } }
        try await queue.resume(session.id)
        await queue.waitUntilIdle()
        #expect(hosts == ["x", "x", "z"])
        #expect(fixture.memory.attempts[1].startOffset == 5_000)
        await queue.shutdown()
    }

    @Test func unresponsiveDelegateDelaysOnlyOneSession() async throws {
        let (calls, called) = AsyncStream.makeStream(of: SessionID.self)
        let slow = SessionID()
        let chooser = Chooser { id, _ in
            guard id == slow else { return nil }
            called.yield(id)
            // Suspends until the end of the test.
            await withCheckedContinuation { (call: CheckedContinuation<Void, Never>) in Self.suspendedCalls.withLock { $0.append(call) } }
            return nil
        }
        let queue = try await open(chooser)
        try await queue.setMaxConcurrentSessions(2)
        var first = try fixture.upload("1")
        first.id = slow
        try await queue.enqueue(first)
        let second = try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        for await id in calls {
            #expect(id == slow)
            break
        }
        #expect(try await second.value.state == .completed)
        // The run ends although the delegate has not responded.
        let events = queue.events
        try await queue.hold(slow)
        _ = await events.first { if case .changed([slow], .held) = $0 { true } else { nil } }
        await queue.shutdown()
        for call in Self.suspendedCalls.withLock({ $0 }) { call.resume() }
        #expect(hosts == ["x"])
    }

    private static let suspendedCalls = Locked<[CheckedContinuation<Void, Never>]>([])
}
