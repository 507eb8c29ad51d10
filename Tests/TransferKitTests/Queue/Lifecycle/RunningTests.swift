import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RunningTests {
    private let fixture: QueueFixture
    private var memory: MemoryTransport { fixture.memory }

    init() throws {
        fixture = try QueueFixture()
    }

    @Test func uploadsSessionsInOrder() async throws {
        let queue = try await fixture.openWithAccounts()
        let requests = [
            try fixture.upload("1", "2", "3"), try fixture.upload("4", size: 0, to: "b"), try fixture.upload("5", "6", size: 2_345),
        ]
        let sessions = try await queue.enqueue(requests)
        #expect(memory.attempts.isEmpty, "no session starts before start()")
        try await queue.start()
        await queue.waitUntilIdle()

        #expect(memory.attempts.map(\.path.description) == ["1", "2", "3", "4", "5", "6"])
        for name in ["1", "2", "3", "4", "5", "6"] { #expect(memory.contents(of: name) == (try fixture.content(name))) }
        let statuses = try await queue.sessions()
        #expect(statuses.map(\.id) == sessions.map(\.id))
        #expect(statuses.map(\.state) == [.completed, .completed, .completed])
        #expect(statuses.map(\.statistics.filesDone) == [3, 1, 2])
        #expect(statuses.map(\.statistics.bytesDone) == [30_000, 0, 4_690])
        #expect(statuses.allSatisfy { $0.startedAt != nil && $0.endedAt != nil && $0.error == nil })
        let items = try await queue.items(of: sessions[0].id)
        #expect(items.map(\.state) == [.completed, .completed, .completed])
        #expect(items.map(\.remoteURL) == ["memory://a/1", "memory://a/2", "memory://a/3"])
        await queue.shutdown()
        #expect(memory.isShutDown)
    }

    @Test func passesTransferIDsToTransport() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try fixture.upload("x", "y"))
        try await queue.start()
        _ = try await session.value
        #expect(memory.attempts.map(\.transferID) == ["\(session.id)-0-1", "\(session.id)-1-1"])
        #expect(memory.attempts.allSatisfy { $0.transferID.utf8.count <= 64 && $0.number == 1 })
        await queue.shutdown()
    }

    @Test func resumesStoppedSessionOnStart() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("1", atByte: 4_000)
        let session = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        try await gate.reached()
        let events = queue.events
        try await queue.stop()
        _ = await events.first { if case .queueStopped = $0 { true } else { nil } }
        #expect(try await session.status.state == .waiting)
        #expect(try await session.status.why == .queueNotRunning)
        #expect(try await session.status.statistics.bytesDone == 4_000)
        gate.open()
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(memory.attempts.map(\.startOffset) == [0, 4_000])
        #expect(memory.contents(of: "1") == (try fixture.content("1")))
        await queue.shutdown()
    }

    @Test func resumesInNextProcess() async throws {
        var queue = try await fixture.openWithAccounts()
        let gate = memory.gate("2", atByte: 7_000)
        let session = try await queue.enqueue(try fixture.upload("1", "2", "3", options: SessionOptions(filesInFlight: 1)))
        try await queue.enqueue(try fixture.upload("4"))
        try await queue.start()
        try await gate.reached()
        await queue.shutdown()
        gate.open()
        await #expect(throws: QueueError.self) { try await queue.start() }

        queue = try await fixture.open()
        let status = try await queue.status(of: session.id)
        #expect(status.state == .waiting)
        #expect(status.statistics.filesDone == 1)
        #expect(status.statistics.bytesDone == 17_000)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(memory.attempts.map(\.path.description) == ["1", "2", "2", "3", "4"])
        #expect(memory.attempts.map(\.startOffset) == [0, 0, 7_000, 0, 0])
        for name in ["1", "2", "3", "4"] { #expect(memory.contents(of: name) == (try fixture.content(name))) }
        await queue.shutdown()
    }

    @Test func startsNextSessionAfterRemoval() async throws {
        let queue = try await fixture.openWithAccounts()
        let gate = memory.gate("1", atByte: 3_000)
        let first = try await queue.enqueue(try fixture.upload("1"))
        let second = try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        try await gate.reached()
        #expect(try await second.status.why == .queueLimit)
        try await first.remove()
        #expect(await queue.sessionIDs() == [second.id])
        #expect(try await second.value.state == .completed)
        #expect(try await #require(throws: QueueError.self) { try await first.status }.code == .noSuchSession)
        #expect(try await #require(throws: TransferError.self) { try await first.value }.code == .cancelled)
        #expect(memory.contents(of: "1") == nil)
        #expect(memory.attempts.first?.outcome == .cancelled)
        #expect(memory.peakRunningCount == 1)
        await queue.shutdown()
    }

    @Test func storesAndValidatesAccounts() async throws {
        var queue = try await fixture.openWithAccounts()
        try await queue.enqueue(try fixture.upload("1"))
        #expect(try await #require(throws: QueueError.self) { try await queue.deleteAccount("a") }.code == .accountInUse)
        try await queue.deleteAccount("b")
        #expect(try await #require(throws: QueueError.self) { try await queue.deleteAccount("b") }.code == .noSuchAccount)
        let withPassword = Account("c", endpoints: [Endpoint(transport: "memory", address: "memory://u:hunter2@c/")])
        let error = try await #require(throws: QueueError.self) { try await queue.save(withPassword) }
        #expect(error.code == .invalidAccount && !error.message.contains("hunter2"))
        await queue.shutdown()
        queue = try await fixture.open()
        #expect(await queue.accounts().map(\.account) == [Account("a", endpoints: [memory.endpoint(host: "a")])])
        await queue.shutdown()
    }

    @Test func rejectsDuplicateTransportID() async throws {
        let error = try await #require(throws: QueueError.self) { try await fixture.open(transports: [memory, MemoryTransport()]) }
        #expect(error.code == .duplicateTransport)
        // This call succeeds only if the failed call has unlocked the folder.
        try await fixture.open().shutdown()
    }

    @Test func waitsForMissingTransport() async throws {
        var queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try fixture.upload("1"))
        await queue.shutdown()
        queue = try await fixture.open(transports: [])
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.status(of: session.id).why == .transportMissing("memory"))
        await queue.shutdown()
        queue = try await fixture.open()
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.status(of: session.id).state == .completed)
        await queue.shutdown()
    }
}
