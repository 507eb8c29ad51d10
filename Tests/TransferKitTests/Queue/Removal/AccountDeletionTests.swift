import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct AccountDeletionTests {
    /// Without their predecessors, the dependents would wait forever.
    @Test func keepsSessionsWithDependents() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let first = try await queue.enqueue(try fixture.upload("1"))
        var request = try fixture.upload("2", to: "b")
        request.dependency = .after(first.id)
        let second = try await queue.enqueue(request)
        let error = await #expect(throws: QueueError.self) { try await queue.deleteAccount("a", cascades: true) }
        #expect(error?.code == .hasDependents)
        #expect(await queue.sessionIDs() == [first.id, second.id])
        try await queue.remove(second.id)
        try await queue.deleteAccount("a", cascades: true)
        #expect(await queue.sessionIDs() == [])
        await queue.shutdown()
    }

    @Test func removesRateLimitOfDeletedAccount() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.open()
        for round in 1...3 {
            var account = Account("a\(round)", endpoints: [fixture.memory.endpoint(host: "a")])
            account.rateLimit = 1_000
            try await queue.save(account)
            #expect(queue.pacer.limitCount == 1)
            try await queue.deleteAccount(account.name)
            #expect(queue.pacer.limitCount == 0)
        }
        await queue.shutdown()
    }
}
