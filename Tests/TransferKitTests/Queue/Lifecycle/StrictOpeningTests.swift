import Testing
import TransferCore
import TransferKit
import TransportTesting

/// A queue with the default ordering that is reopened as a strict one.
@Suite struct StrictOpeningTests {
    @Test func rejectsOrderThatNeverEnds() async throws {
        let fixture = try QueueFixture()
        var queue = try await fixture.openWithAccounts()
        let first = try await queue.enqueue(try fixture.upload("1"))
        var request = try fixture.upload("2")
        request.dependency = .after(first.id)
        let second = try await queue.enqueue(request)
        try await queue.move(second.id, to: .front)
        await queue.shutdown()

        let error = await #expect(throws: QueueError.self) { try await fixture.open(ordering: .strict) }
        #expect(error?.code == .impossibleOrder)
        #expect(error?.description.contains("\(second.id)") == true)

        queue = try await fixture.open()
        #expect(await queue.sessionIDs() == [second.id, first.id])
        try await queue.move(second.id, to: .end)
        await queue.shutdown()
        queue = try await fixture.open(ordering: .strict)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.sessions().map(\.state) == [.completed, .completed])
        await queue.shutdown()
    }
}
