import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// What is left at servers, where removing it goes wrong.
@Suite struct DiscardTests {
    private let fixture: QueueFixture
    private let transport: StubbornTransport

    init() throws {
        fixture = try QueueFixture()
        transport = StubbornTransport(fixture.memory)
    }

    /// Opens a queue with a cancelled session for each host, which the server has a part of.
    private func cancelled(_ hosts: [String]) async throws -> TransferQueue {
        let queue = try await fixture.open(transports: [transport])
        try await queue.setSessionLimit(hosts.count)
        var sessions: [TransferSession] = []
        for host in hosts { try await queue.save(Account(host, endpoints: [fixture.memory.endpoint(host: host)])) }
        for host in hosts {
            let gate = fixture.memory.gate(host, atByte: 4_000)
            sessions.append(try await queue.enqueue(try fixture.upload(host, to: host)))
            try await queue.start()
            try await gate.reached()
        }
        for session in sessions { try await queue.cancel(session.id) }
        return queue
    }

    private func due(_ queue: TransferQueue) async throws -> Int {
        let store = try StoreInspection(fixture.folder.path.appending("store"))
        return try store.count("discard") ?? -1
    }

    @Test func oneThatHangsHoldsUpNoOther() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: true)
        let queue = try await cancelled(["a", "b", "c"])
        try await hung.wait()
        #expect(fixture.memory.partialCount == 3)
        await fixture.clock.sleeps(for: .seconds(120))
        fixture.clock.advance(by: .seconds(120))
        await queue.waitUntilIdle()
        #expect(fixture.memory.partialCount == 1)
        #expect(try await due(queue) == 1)
        transport.heal()
        // The first delay is at most ten seconds.
        fixture.clock.advance(by: .seconds(10))
        while try await due(queue) > 0 { await queue.waitUntilIdle() }
        #expect(fixture.memory.partialCount == 0)
        await queue.shutdown()
    }

    @Test func whatHangsForAWeekIsGivenUp() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: false)
        let queue = try await cancelled(["a"])
        try await hung.wait()
        fixture.clock.advance(by: .seconds(8 * 24 * 3_600))
        await queue.waitUntilIdle()
        #expect(try await due(queue) == 0)
        #expect(fixture.memory.partialCount == 1, "the server is left to remove it by itself")
        await queue.shutdown()
    }

    @Test func aQueueIsShutDownAlthoughOneHangs() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: true)
        let queue = try await cancelled(["a"])
        try await hung.wait()
        let end = Task { await queue.shutdown() }
        await fixture.clock.sleeps(for: .seconds(5))
        fixture.clock.advance(by: .seconds(5))
        await end.value
        #expect(try await due(queue) == 1)
    }
}

/// A transport that removes nothing at some hosts, and does not say so.
private final class StubbornTransport: PartialDiscarding {
    private struct State {
        var host: String?
        var ignoresCancellation = false
        var arrival = Latch()
    }

    private let memory: MemoryTransport
    private let state = Locked(State())
    /// Never opened.
    private let end = Latch()

    init(_ memory: MemoryTransport) {
        self.memory = memory
    }

    var id: TransportID { memory.id }

    /// - Returns: Opened by the first discard that hangs.
    func hang(at host: String, ignoresCancellation: Bool) -> Latch {
        state.withLock { state in
            state.host = host
            state.ignoresCancellation = ignoresCancellation
            return state.arrival
        }
    }

    func heal() { state.withLock { $0.host = nil } }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try await memory.perform(attempt, reporting: reporter)
    }

    func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        let state = state.withLock { $0 }
        guard let host = state.host, endpoint == memory.endpoint(host: host) else {
            return try await memory.discard(checkpoint, at: endpoint, credentials: credentials)
        }
        state.arrival.open()
        guard state.ignoresCancellation else { return try await end.wait() }
        let end = end
        await Task { try? await end.wait() }.value
    }

    func shutdown() async { await memory.shutdown() }
}
