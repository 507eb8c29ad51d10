import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct AbsurdSizeTests {
    private struct LyingTransport: Transport {
        let id = TransportID(rawValue: "memory")

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            reporter.report(total: .max)
            throw TransferError(.permanent, .rejected, "There is no such file.")
        }

        func shutdown() async {}
    }

    @Test func ignoresImpossibleTotal() async throws {
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

    /// Reports each file as complete, with `size` bytes, without any content.
    private struct ClaimingTransport: Transport {
        let id = TransportID(rawValue: "memory")
        let size: Int64
        let reportsTotal: Bool

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            if reportsTotal { reporter.report(total: size) }
            reporter.report(sent: size, confirmed: size)
            return TransferReceipt(bytes: size)
        }

        func shutdown() async {}
    }

    @Test(arguments: [1, 17, 200] as [Int], [true, false])
    func receiptsOfAnySizeDoNotTrap(_ count: Int, _ reportsTotal: Bool) async throws {
        let sizes: [Int64] = [0, 1 << 31, 1 << 32, (1 << 56) - 1, 1 << 56, 1 << 60, .max]
        for size in sizes {
            let fixture = try DownloadFixture()
            let queue = try await fixture.queue.open(transports: [ClaimingTransport(size: size, reportsTotal: reportsTotal)])
            try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
            let names = try (0..<count).map { try RemotePath("\($0)") }
            let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 1))
            let session = try await queue.enqueue(.download(names, from: "a", to: fixture.target, options: options))
            try await queue.start()
            if size <= 1 << 56, Int64(count) <= (1 << 60) / max(size, 1) {
                #expect(try await session.value.statistics.bytesDone == size * Int64(count))
            } else {
                await #expect(throws: TransferError.self) { try await session.value }
                let status = try await session.status
                #expect(status.statistics.filesFailed > 0 && status.state == .failed)
            }
            await queue.shutdown()
        }
    }
}
