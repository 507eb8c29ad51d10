import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Transports that tell sizes that no file has.
@Suite struct AbsurdSizeTests {
    private struct LyingTransport: Transport {
        let id = TransportID(rawValue: "memory")

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            reporter.report(total: .max)
            throw TransferError(.permanent, .rejected, "There is no such file.")
        }

        func shutdown() async {}
    }

    @Test func theyAreNotBelieved() async throws {
        let fixture = try DownloadFixture()
        let queue = try await fixture.queue.open(transports: [LyingTransport()])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(
            .download([try RemotePath("one"), try RemotePath("two")], from: "a", to: fixture.target))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(try await session.status.statistics.filesFailed == 2)
        #expect(try await queue.items(of: session.id).allSatisfy { $0.bytesTotal == nil })
        await queue.shutdown()
    }
}
