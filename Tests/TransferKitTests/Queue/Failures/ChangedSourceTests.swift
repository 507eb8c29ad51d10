import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct ChangedSourceTests {
    @Test(arguments: [false, true]) func retryUploadsCurrentContent(_ usesRun: Bool) async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try fixture.upload("1", "2"))
        for size in [7_000, 8_000] {
            fixture.memory.faults.append(.cut(afterBytes: 5_000))
            try await queue.start()
            await fixture.clock.waitForSleep(of: .seconds(1))
            _ = try fixture.folder.file("1", size: size)
            fixture.clock.advance(by: .seconds(1))
            await queue.waitUntilIdle()
            #expect(try await session.status.state == .failed)
            #expect(try await queue.items(of: session.id).first?.error?.failureClass == .sourceChanged)
            if usesRun { try await queue.run(session.id) } else { try await queue.retry(session.id) }
            if size == 7_000 { continue }
            await queue.waitUntilIdle()
        }
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.state) == [.completed, .completed])
        #expect(items.map(\.bytesTotal) == [8_000, 10_000])
        #expect(fixture.memory.contents(of: "1") == (try fixture.content("1")))
        #expect(try await session.status.statistics.bytesDone == 18_000)
        #expect(fixture.memory.partialCount == 0, "the partial uploads of earlier contents are removed")
        await queue.shutdown()
    }
}
