import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Transports that continue a listing after it was stopped.
@Suite struct StubbornListerTests {
    /// Lists entries without an end, one piece for each order, and ignores errors.
    private struct StubbornLister: FolderListing {
        let id = TransportID(rawValue: "memory")
        let orders: AsyncStream<Void>
        /// Whether each piece was accepted.
        let results: AsyncStream<Bool>.Continuation
        let wasCancelled: Latch

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            throw TransferError(.permanent, .rejected, "There is nothing to receive.")
        }

        func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
            let piece = (0..<1_000).map { RemoteEntry(name: Array("\($0)".utf8), kind: .file(size: 1)) }
            for await _ in orders {
                do {
                    try await receive(piece)
                    results.yield(true)
                } catch {
                    results.yield(false)
                }
            }
            if Task.isCancelled { wasCancelled.open() }
        }

        func shutdown() async {}
    }

    @Test func rejectsMorePiecesAndEndsAttempt() async throws {
        let fixture = try DownloadFixture()
        let (orders, order) = AsyncStream.makeStream(of: Void.self)
        let (results, result) = AsyncStream.makeStream(of: Bool.self)
        let wasCancelled = Latch()
        let queue = try await fixture.queue.open(
            transports: [StubbornLister(orders: orders, results: result, wasCancelled: wasCancelled)])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let options = SessionOptions(stallTimeout: .seconds(6), responseTimeout: .seconds(6))
        let session = try await queue.enqueue(
            .download(items: [.remoteFolder(try RemotePath("x"))], from: "a", to: fixture.target, options: options))
        try await queue.start()
        var taken = results.makeAsyncIterator()
        // The same thousand names again and again. The queue rejects them when it checks a chunk of 16,384.
        for number in 0..<16 {
            order.yield()
            let isTaken = await taken.next()
            #expect(isTaken == true, "piece \(number)")
        }
        // From now on, its pieces do not count as activity.
        for number in 0..<60 {
            await fixture.queue.clock.sleeps(for: .milliseconds(100))
            order.yield()
            let isTaken = await taken.next()
            #expect(isTaken == false, "piece \(16 + number)")
            fixture.queue.clock.advance(by: .milliseconds(100))
        }
        await fixture.queue.clock.sleeps(for: .milliseconds(100))
        fixture.queue.clock.advance(by: .milliseconds(200))
        try await wasCancelled.wait()
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(try await session.status.error?.message.hasPrefix("The server keeps listing the same names in x") == true)
        await queue.shutdown()
    }
}
