import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StubbornListerTests {
    /// Lists one batch of entries for each trigger, and ignores the errors that `receive` throws.
    private struct StubbornLister: FolderListing {
        let id = TransportID(rawValue: "memory")
        let triggers: AsyncStream<Void>
        /// Whether the queue accepted each batch.
        let results: AsyncStream<Bool>.Continuation
        let wasCancelled: Latch

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            throw TransferError(.permanent, .rejected, "There is nothing to receive.")
        }

        func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
            let batch = (0..<1_000).map { RemoteEntry(name: Array("\($0)".utf8), kind: .file(size: 1)) }
            for await _ in triggers {
                do {
                    try await receive(batch)
                    results.yield(true)
                } catch {
                    results.yield(false)
                }
            }
            if Task.isCancelled { wasCancelled.open() }
        }

        func shutdown() async {}
    }

    @Test func rejectsFurtherBatchesAndEndsAttempt() async throws {
        let fixture = try DownloadFixture()
        let (triggers, trigger) = AsyncStream.makeStream(of: Void.self)
        let (results, result) = AsyncStream.makeStream(of: Bool.self)
        let wasCancelled = Latch()
        let queue = try await fixture.queue.open(
            transports: [StubbornLister(triggers: triggers, results: result, wasCancelled: wasCancelled)])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let options = SessionOptions(stallTimeout: .seconds(6), responseTimeout: .seconds(6))
        let session = try await queue.enqueue(
            .download(items: [.remoteFolder(try RemotePath("x"))], from: "a", to: fixture.target, options: options))
        try await queue.start()
        var outcomes = results.makeAsyncIterator()
        // Each batch contains the same thousand names. The queue checks for repeated names only when it has 16,384 entries in memory.
        for number in 0..<16 {
            trigger.yield()
            let isAccepted = await outcomes.next()
            #expect(isAccepted == true, "batch \(number)")
        }
        // From now on, the queue rejects each batch. A rejected batch does not count as activity.
        for number in 0..<60 {
            await fixture.queue.clock.waitForSleep(of: .milliseconds(100))
            trigger.yield()
            let isAccepted = await outcomes.next()
            #expect(isAccepted == false, "batch \(16 + number)")
            fixture.queue.clock.advance(by: .milliseconds(100))
        }
        await fixture.queue.clock.waitForSleep(of: .milliseconds(100))
        fixture.queue.clock.advance(by: .milliseconds(200))
        try await wasCancelled.wait()
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(try await session.status.error?.message.hasPrefix("The server keeps listing the same names in x") == true)
        await queue.shutdown()
    }
}
