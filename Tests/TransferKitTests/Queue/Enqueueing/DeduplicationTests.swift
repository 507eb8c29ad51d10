import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct DeduplicationTests {
    private func keyed(_ request: SessionRequest, includesCompleted: Bool = true) -> SessionRequest {
        var request = request
        request.id = SessionID()
        request.deduplicationKey = "key"
        request.deduplicatesCompleted = includesCompleted
        return request
    }

    @Test func completedUploadIsFoundAfterSourceIsDeleted() async throws {
        let fixture = try QueueFixture()
        var queue = try await fixture.openWithAccounts()
        let request = try fixture.upload("1")
        let session = try await queue.enqueue(keyed(request))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
        try FileManager.default.removeItem(atPath: fixture.folder.path.appending("1").string)
        queue = try await fixture.open()
        #expect(try await queue.enqueue(keyed(request)).id == session.id)
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(keyed(request, includesCompleted: false)) }
        #expect(error?.code == .unreadableItems)
        #expect(await queue.status().sessions == 1)
        try await queue.remove(session.id)
        await #expect(throws: QueueError.self) { try await queue.enqueue(keyed(request)) }
        await queue.shutdown()
    }

    /// The request uses the default overwrite policy, which rejects existing files.
    @Test func completedDownloadIsFoundAlthoughItsFileExists() async throws {
        let fixture = try DownloadFixture()
        let queue = try await fixture.queue.openWithAccounts()
        fixture.memory.provide(DownloadFixture.content(5_000), as: "reel")
        let request = try SessionRequest.download([try RemotePath("reel")], from: "a", to: fixture.target)
        let session = try await queue.enqueue(keyed(request))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(try await queue.enqueue(keyed(request)).id == session.id)
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(keyed(request, includesCompleted: false)) }
        #expect(error?.code == .fileExists)
        await queue.shutdown()
    }

    @Test func deduplicatingCompletedSessionsRequiresKey() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        var request = try fixture.upload("1")
        request.deduplicatesCompleted = true
        let unkeyed = request
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(unkeyed) }
        #expect(error?.code == .invalidRequest)
        await queue.shutdown()
    }

    @Test func invalidRequestIsRejectedDespiteItsKey() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        var request = try fixture.upload("1", "2")
        let session = try await queue.enqueue(keyed(request))
        #expect(try await queue.enqueue(keyed(request)).id == session.id)
        request.items[0].uploadURL = "with a space"
        let invalid = keyed(request)
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(invalid) }
        #expect(error?.code == .invalidRequest)
        await queue.shutdown()
    }
}
