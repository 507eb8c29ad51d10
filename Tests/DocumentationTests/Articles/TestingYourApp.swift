// swift-format-ignore-file

import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

// The code of the article "Testing your app", in the same order. ``ArticleTests`` verifies that both copies match. Unlike the code of
// other articles, this code also runs.

// ARTICLE
struct UploaderTests {
    let memory = MemoryTransport()

    /// Opens a queue with the account "studio". Without an argument, its storage is in memory, and ends with it.
    func open(_ storage: Storage = .inMemory) async throws -> TransferQueue {
        let queue = try await TransferQueue(storage: storage, transports: [memory])
        try await queue.save(Account("studio", endpoints: [memory.endpoint()]))
        return queue
    }

    /// An upload of 300,000 bytes whose failed attempts are retried without delay.
    func reel() throws -> SessionRequest {
        try .upload(
            items: [.data(Data(repeating: 7, count: 300_000), as: "reel.mov")], to: "studio",
            options: SessionOptions(retry: RetryPolicy(base: .zero)))
    }
}
// END

// ARTICLE
extension UploaderTests {
    @Test func uploadResumesAfterLostConnection() async throws {
        let queue = try await open()
        memory.faults.append(.cut(afterBytes: 100_000))
        let session = try await queue.enqueue(reel())
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(memory.contents(of: "reel.mov")?.count == 300_000)
        #expect(memory.attempts.map(\.startOffset) == [0, 100_000])
        await queue.shutdown()
    }
}
// END

// ARTICLE
extension UploaderTests {
    @Test func pausedUploadKeepsItsBytes() async throws {
        let queue = try await open()
        let gate = memory.gate("reel.mov", atByte: 131_072)
        let session = try await queue.enqueue(reel())
        try await queue.start()
        try await gate.reached()
        #expect(try await queue.pause(session.id) == .paused)
        gate.open()
        try await queue.resume(session.id)
        #expect(try await session.value.statistics.bytesDone == 300_000)
        #expect(memory.attempts.map(\.startOffset) == [0, 131_072])
        await queue.shutdown()
    }
}
// END

// ARTICLE
extension UploaderTests {
    @Test func rejectedPasswordBlocksOnlyTheAccount() async throws {
        let queue = try await open()
        memory.refuse(host: "memory", with: TransferError(.credentials, .credentialsRejected, "The password is wrong."))
        let session = try await queue.enqueue(reel())
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(await queue.account("studio")?.blockingError?.code == .credentialsRejected)
        guard case .accountBlocked = try await session.status.why else { throw CancellationError() }

        memory.accept(host: "memory")
        try await queue.unblockAccount("studio")
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }
}
// END

// ARTICLE
extension UploaderTests {
    @Test func uploadSurvivesRestart() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "uploader-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let first = try await open(.folder(folder))
        let gate = memory.gate("reel.mov", atByte: 131_072)
        let id = try await first.enqueue(reel()).id
        try await first.start()
        try await gate.reached()
        await first.shutdown()

        gate.open()
        let second = try await open(.folder(folder))
        try await second.start()
        #expect(try await second.session(id).value.state == .completed)
        #expect(memory.attempts.map(\.startOffset) == [0, 131_072])
        await second.shutdown()
    }
}
// END

// ARTICLE
struct ListTests {
    @Test func insertedSessionAppearsInRow() {
        var list = QueueList(QueueOrder(sessions: [], revision: 0))
        #expect(list.apply(.willChangeQueue(orderRevision: 1)) == nil)
        #expect(list.apply(.added([SessionID()], index: 0)) == .inserted(0..<1))
        #expect(list.order.sessions.count == 1)
    }
}
// END
