import Locking
import Logging
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct MissingTransportTests {
    @Test func queueWarnsAndBecomesIdle() async throws {
        let fixture = try QueueFixture()
        let warnings = Locked(0)
        let queue = try await fixture.open(logger: Logger(label: "test") { _ in CountingLog(warnings: warnings) })
        func countWarnings(_ call: () async throws -> Void) async throws -> Int {
            let before = warnings.withLock { $0 }
            try await call()
            return warnings.withLock { $0 } - before
        }
        let missing = Endpoint(transport: "carrier-pigeon", address: "loft://a/")
        #expect(try await countWarnings { try await queue.save(Account("a", endpoints: [missing])) } == 1)
        #expect(
            try await countWarnings { try await queue.save(Account("b", endpoints: [missing, fixture.memory.endpoint(host: "b")])) } == 0)
        #expect(try await countWarnings { try await queue.save(Account("unused", endpoints: [missing])) } == 1)
        let session = try await queue.enqueue(try fixture.upload("0", to: "b"))
        #expect(try await countWarnings { _ = try await queue.enqueue([try fixture.upload("1"), try fixture.upload("2")]) } == 1)
        #expect(try await countWarnings { try await queue.start() } == 1, "the queue warns only about accounts with sessions")
        await queue.waitUntilIdle()
        #expect(try await session.status.state == .completed)
        #expect(await queue.status().isIdle, "the sessions need user action")
        #expect(try await queue.sessions()[1].why == .transportMissing("carrier-pigeon"))
        await queue.shutdown()
    }
}
