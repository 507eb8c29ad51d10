import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct InterruptedListingTests {
    private let fixture: DownloadFixture
    private var memory: MemoryTransport { fixture.memory }
    private var listings: [String] { memory.listings.map(\.description) }

    init() throws {
        fixture = try DownloadFixture()
    }

    private func request(_ path: String, options: SessionOptions = SessionOptions()) throws -> SessionRequest {
        try .download(items: [.remoteFolder(try RemotePath(path))], from: "a", to: fixture.target, options: options)
    }

    private func provide(_ count: Int, in folder: String) {
        for number in 0..<count { memory.provide(DownloadFixture.content(10, seed: number), as: "\(folder)/\(number)") }
    }

    private func pause(_ id: SessionID, _ queue: TransferQueue) async throws {
        try await queue.pause(id)
        while try await queue.status(of: id).phase == .ending { await Task.yield() }
    }

    @Test(arguments: [false, true]) func resumesInterruptedListing(inAnotherProcess: Bool) async throws {
        provide(3, in: "trip")
        for name in ["a", "b"] { provide(2, in: "trip/\(name)") }
        let gate = memory.gate("trip/b")
        var queue = try await fixture.queue.openWithAccounts()
        let id = try await queue.enqueue(request("trip")).id
        try await queue.start()
        try await gate.reached()
        #expect(try await queue.status(of: id).phase == .preparing)
        try await pause(id, queue)
        #expect(memory.attempts.isEmpty)
        #expect(
            try await queue.status(of: id).statistics.files == 6,
            "three files in trip, two in trip/a, and one placeholder for everything not listed yet")
        gate.open()
        if inAnotherProcess {
            await queue.shutdown()
            queue = try await fixture.queue.open()
            try await queue.start()
        }
        try await queue.resume(id)
        #expect(try await queue.session(id).value.statistics.filesDone == 7)
        #expect(listings == ["trip", "trip/a", "trip/b", "trip/b"])
        await queue.shutdown()
    }

    /// The queue stores the listings of many small folders in one transaction. If the listings are slow, the queue stores the results after
    /// one second.
    @Test func storesResultsOfSlowListing() async throws {
        for name in ["trip", "trip/a", "trip/b"] { provide(2, in: name) }
        let gates = ["trip/a", "trip/b"].map { memory.gate($0) }
        let queue = try await fixture.queue.openWithAccounts()
        let session = try await queue.enqueue(request("trip"))
        try await queue.start()
        try await gates[0].reached()
        fixture.queue.clock.advance(by: .seconds(1))
        gates[0].open()
        try await gates[1].reached()
        let found = try await queue.items(of: session.id, from: 0, limit: 9).filter { !$0.isFolder }
        #expect(found.map(\.destination.description) == ["trip/0", "trip/1", "trip/a/0", "trip/a/1"])
        gates[1].open()
        #expect(try await session.value.statistics.filesDone == 6)
        await queue.shutdown()
    }

    @Test func countsAttemptsBeforeInterruption() async throws {
        provide(2, in: "trip")
        provide(2, in: "trip/broken")
        let failure = TransferError(.transient, .serverError, "The server's disk failed.")
        memory.failNext(2, with: failure, for: "trip/broken")
        let gate = memory.gate("trip/broken")
        let queue = try await fixture.queue.openWithAccounts()
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 3))
        let session = try await queue.enqueue(request("trip", options: options))
        try await queue.start()
        try await gate.reached()
        try await pause(session.id, queue)
        gate.open()
        memory.failNext(with: failure, for: "trip/broken")
        try await queue.resume(session.id)
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(try await session.status.statistics.filesFailed == 1)
        #expect(listings == ["trip"] + Array(repeating: "trip/broken", count: 4))
        await queue.shutdown()
    }

    /// Lists files with the given names, and more symbolic links than the queue holds in memory. The first listing then opens the latch, and waits
    /// until the queue cancels the listing.
    private func slowLister(_ names: [String], _ latch: Latch) -> ScriptedLister {
        let listingCount = Locked(0)
        return ScriptedLister(memory: memory) { _, number in
            switch number {
            case 0: return names.map { RemoteEntry(name: Array($0.utf8), kind: .file(size: nil)) }
            case 1...17: return (0..<1_000).map { RemoteEntry(name: Array("link \(number) \($0)".utf8), kind: .symbolicLink) }
            default:
                let isFirst = listingCount.withLock { listingCount in
                    listingCount += 1
                    return listingCount == 1
                }
                guard isFirst else { return nil }
                latch.open()
                try await Latch().wait()
                return nil
            }
        }
    }

    @Test func countsUnknownSizesOnce() async throws {
        let latch = Latch()
        let lister = slowLister(["a", "b"], latch)
        for name in ["a", "b"] { memory.provide(Data("content".utf8), as: "trip/\(name)") }
        let gate = memory.gate("trip/b", atByte: 7)
        let queue = try await fixture.queue.open(transports: [lister])
        try await queue.save(Account("a", endpoints: [memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(request("trip"))
        try await queue.start()
        try await latch.wait()
        try await pause(session.id, queue)
        #expect(try await queue.items(of: session.id, from: 0, limit: 5).count == 5)
        #expect(try await session.status.statistics.bytesTotal == 0, "the total excludes an interrupted listing")
        try await queue.resume(session.id)
        try await gate.reached()
        #expect(try await session.status.statistics.bytesTotal == 14)
        gate.open()
        #expect(try await session.value.statistics.filesDone == 2)
        await queue.shutdown()
    }

    @Test func countsRejectedNamesOnce() async throws {
        let latch = Latch()
        let lister = slowLister(["a/b"], latch)
        let queue = try await fixture.queue.open(transports: [lister])
        try await queue.save(Account("a", endpoints: [memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(request("trip"))
        try await queue.start()
        try await latch.wait()
        try await queue.cancel(session.id, discarding: true)
        while try await session.status.phase == .ending { await Task.yield() }
        try await queue.retry(session.id)
        await #expect(throws: TransferError.self) { try await session.value }
        let statistics = try await session.status.statistics
        #expect(statistics.files == 1 && statistics.filesFailed == 1)
        await queue.shutdown()
    }
}
