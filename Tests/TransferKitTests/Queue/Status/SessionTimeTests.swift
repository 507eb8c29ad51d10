import Foundation
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct SessionTimeTests {
    @Test(arguments: [[2_000, 1_000, 500], [1_000, 2_000, 500], [2_000, 500, 1_000], [1_000, 2_000, 3_000]] as [[Double]])
    func storedTimesNeverDecrease(_ dates: [Double]) async throws {
        let folder = try TemporaryFolder()
        let memory = MemoryTransport(chunkSize: 1_000)
        let date = Locked(dates[0])
        let system = EngineClock.system
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        configuration.clock = EngineClock(
            now: system.now, date: { Date(timeIntervalSince1970: date.withLock { $0 }) }, sleep: { try await system.sleep($0) })
        let queue = try await TransferQueue(
            storage: .folder(folder.path.appending("store")), transports: [memory], configuration: configuration)
        try await queue.save(Account("a", endpoints: [memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(.upload([try folder.file("f", size: 10_000)], to: "a"))
        let gate = memory.gate("f", atByte: 4_000)
        date.withLock { $0 = dates[1] }
        try await queue.start()
        try await gate.reached()
        date.withLock { $0 = dates[2] }
        gate.open()
        let status = try await session.value
        let started = try #require(status.startedAt)
        let ended = try #require(status.endedAt)
        #expect(status.createdAt <= started && started <= ended)
        await queue.shutdown()
    }
}
