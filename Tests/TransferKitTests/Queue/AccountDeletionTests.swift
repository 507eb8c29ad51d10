import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct AccountDeletionTests {
    @Test func nothingIsLeftOfADeletedAccountsRate() async throws {
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
