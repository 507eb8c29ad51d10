import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StaleOrderTests {
    @Test func enqueuesAtIndexOnlyIfOrderIsCurrent() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let request = try fixture.upload("1")
        let first = try await queue.enqueue(request)
        let revision = await queue.status().orderRevision
        let second = try await queue.enqueue([try fixture.upload("2")], at: 0, expecting: revision)
        let error = await #expect(throws: QueueError.self) {
            try await queue.enqueue(try fixture.upload("3"), at: 0, expecting: revision, held: true)
        }
        #expect(error?.code == .staleOrder)
        #expect(await queue.sessionIDs() == [second[0].id, first.id])
        try await queue.enqueue(try fixture.upload("4"), at: 0, expecting: nil)
        #expect(await queue.status().sessions == 3)
        await queue.shutdown()
    }

    @Test func repeatedCallReturnsFirstSessionDespiteStaleOrder() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let other = try await queue.enqueue(try fixture.upload("1"))
        let revision = await queue.status().orderRevision
        func keyed() throws -> SessionRequest {
            var request = try fixture.upload("2")
            request.deduplicationKey = "key"
            return request
        }
        let first = try await queue.enqueue(try keyed(), at: 1, expecting: revision)
        #expect(try await queue.enqueue(try keyed(), at: 1, expecting: revision).id == first.id)
        // Now the index is also beyond the end of the order.
        try await queue.remove(other.id)
        #expect(try await queue.enqueue(try keyed(), at: 2, expecting: revision).id == first.id)
        #expect(await queue.sessionIDs() == [first.id])
        // A new request in the same call needs the current order.
        let error = await #expect(throws: QueueError.self) {
            try await queue.enqueue([try keyed(), try fixture.upload("3")], at: 1, expecting: revision)
        }
        #expect(error?.code == .staleOrder)
        await queue.shutdown()
    }

    @Test func movesToIndexOnlyIfOrderIsCurrent() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let ids = try await queue.enqueue(["1", "2", "3"].map { try fixture.upload($0) }).map(\.id)
        let revision = await queue.status().orderRevision
        try await queue.move(ids[2], to: .index(0, expecting: revision))
        for stale in [MoveDestination.index(1, expecting: revision), .index(7, expecting: revision)] {
            let error = await #expect(throws: QueueError.self) { try await queue.move(ids[0], to: stale) }
            #expect(error?.code == .staleOrder)
        }
        let error = await #expect(throws: QueueError.self) {
            try await queue.apply(.move(to: .index(1, expecting: revision)), to: .sessions([ids[0], ids[1]]))
        }
        #expect(error?.code == .staleOrder)
        #expect(await queue.sessionIDs() == [ids[2], ids[0], ids[1]])
        try await queue.move(ids[2], to: .index(1))
        #expect(await queue.sessionIDs() == [ids[0], ids[2], ids[1]])
        await queue.shutdown()
    }
}
