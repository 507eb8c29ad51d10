import Locking
import Testing
import TransferCore
import TransferKit

@Suite struct ClientReadsTests {
    @Test func limitsConcurrentReadsAndServesAll() async {
        let reads = ClientReads(limit: 2)
        let counts = Locked((current: 0, maximum: 0, total: 0))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    await reads.run {
                        counts.withLock {
                            $0.current += 1
                            $0.maximum = max($0.maximum, $0.current)
                            $0.total += 1
                        }
                        for _ in 0..<10 { await Task.yield() }
                        counts.withLock { $0.current -= 1 }
                    }
                }
            }
        }
        let (maximum, total) = counts.withLock { ($0.maximum, $0.total) }
        #expect(maximum <= 2 && total == 100)
    }

    @Test func hangingReadOccupiesOneSlot() async {
        let reads = ClientReads(limit: 2)
        let (end, continuation) = AsyncStream.makeStream(of: Void.self)
        let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
        let hung = Task {
            await reads.run {
                beginning.finish()
                for await _ in end {}
            }
        }
        for await _ in begun {}
        for number in 0..<10 { #expect(await reads.run { number } == number) }
        continuation.finish()
        await hung.value
    }

    /// An operation on a tag looks up the sessions with this tag as a client's read does.
    @Test func operationOnTagWaitsForFreeSlot() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        var request = try fixture.upload("1")
        request.tags = ["red"]
        try await queue.enqueue([request])
        let (continuation, blockingReads) = await occupySlots(of: queue)
        let isDone = Locked(false)
        let operation = Task {
            _ = try await queue.apply(.hold, to: .tag("red"))
            isDone.withLock { $0 = true }
        }
        for _ in 0..<100 { _ = await queue.status() }
        #expect(!isDone.withLock { $0 })
        continuation.finish()
        try await operation.value
        for read in blockingReads { await read.value }
        #expect(await queue.status().held == 1)
        await queue.shutdown()
    }

    /// An update of all sessions with a tag first lists and checks these sessions.
    @Test func listingOfTagWaitsForFreeSlot() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        var request = try fixture.upload("1")
        request.tags = ["red"]
        try await queue.enqueue([request])
        let (continuation, blockingReads) = await occupySlots(of: queue)
        // The update is invalid for an upload, so the call fails once the session is found.
        var update = SessionUpdate()
        update.expectedChecksum = .set("sha256:" + String(repeating: "0", count: 64))
        let isDone = Locked(false)
        let operation = Task { [update] in
            defer { isDone.withLock { $0 = true } }
            _ = try await queue.apply(.update(update), to: .tag("red"))
        }
        for _ in 0..<300 { _ = await queue.status() }
        #expect(!isDone.withLock { $0 })
        continuation.finish()
        await #expect(throws: QueueError.self) { try await operation.value }
        for read in blockingReads { await read.value }
        await queue.shutdown()
    }

    private enum Change: CaseIterable {
        case addItems, replaceItems, update, updateOfGroup
    }

    /// A change first reads its session or the items of the session.
    @Test(arguments: Change.allCases) private func changeWaitsForFreeSlot(_ change: Change) async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let id = try await queue.enqueue(try fixture.upload("1")).id
        let item = TransferItem(try fixture.folder.file("2", size: 10))
        let update = SessionUpdate(overwrite: .always)
        let (continuation, blockingReads) = await occupySlots(of: queue)
        let isDone = Locked(false)
        let operation = Task {
            switch change {
            case .addItems: try await queue.addItems([item], to: .id(id))
            case .replaceItems: try await queue.replaceItems(.all, with: [item], in: .id(id))
            case .update: _ = try await queue.apply(.update(update), to: .id(id))
            case .updateOfGroup: _ = try await queue.apply(.update(update), to: .sessions([id]))
            }
            isDone.withLock { $0 = true }
        }
        for _ in 0..<300 { _ = await queue.status() }
        #expect(!isDone.withLock { $0 })
        continuation.finish()
        try await operation.value
        for read in blockingReads { await read.value }
        await queue.shutdown()
    }

    /// Readers of stored events wait for a free slot. The queue's own reads don't, so sessions still run.
    @Test func sessionRunsWhileSlotsAreOccupied() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        try await queue.enqueue([try fixture.upload("1")])
        let (continuation, blockingReads) = await occupySlots(of: queue)
        let hasRead = Locked(false)
        let reader = Task { [events = queue.events(since: 0)] in
            let first = await events.collect(1)
            hasRead.withLock { $0 = true }
            return first.map(\.revision)
        }
        let events = queue.events
        try await queue.start()
        for await event in events where event.kind.name == "completed" { break }
        #expect(!hasRead.withLock { $0 })
        continuation.finish()
        #expect(await reader.value == [1])
        for read in blockingReads { await read.value }
        await queue.shutdown()
    }

    /// Starts reads that occupy all slots until the continuation is finished.
    private func occupySlots(of queue: TransferQueue) async -> (AsyncStream<Void>.Continuation, [Task<Void, Never>]) {
        let (end, continuation) = AsyncStream.makeStream(of: Void.self)
        let begun = Locked(0)
        let blockingReads = (0..<2).map { _ in
            Task { [reads = queue.clientReads] in
                await reads.run {
                    begun.withLock { $0 += 1 }
                    for await _ in end {}
                }
            }
        }
        while begun.withLock({ $0 }) < 2 { await Task.yield() }
        return (continuation, blockingReads)
    }
}
