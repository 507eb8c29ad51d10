import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// Files that are prepared while others wait for their responses.
@Suite struct FilesAheadTests {
    private let turns = RequestTurns()

    private func enqueue(_ count: Int, in fixture: RunFixture) async throws {
        let path = try fixture.folder.file("x", size: 10)
        let items = (0..<count).map { ItemDraft(source: Data(path.string.utf8), destination: Data("\($0)".utf8), size: 10) }
        let draft = SessionDraft(id: SessionID(), account: "a", name: "many", items: items)
        try await fixture.store.commit([.deleteSession(1), .session(1, rank: 0, draft)])
    }

    @Test func limitsRequests() async throws {
        let transport = PreparingTransport()
        let fixture = try await RunFixture([:], transport: transport)
        try await enqueue(200, in: fixture)
        let run = try await fixture.start()
        await transport.wait { $0.saving == 12 && $0.asking == 6 }
        // They wait rather than hang.
        let live = try #require(fixture.live.withLock { $0 })
        while live.activeFiles.count(where: \.awaitsSource) < 6 { await Task.yield() }
        #expect(live.activeFiles.count == 12)
        transport.open()
        #expect(try await run.value?.isFinished == true)
        #expect(transport.seen.peak == 6)
        #expect(transport.seen.asked.sorted() == Array(0..<200))
        await fixture.close()
    }

    /// The number of the app applies to all phases.
    @Test func numberOfAppPermitsAllRequests() async throws {
        let transport = PreparingTransport()
        let fixture = try await RunFixture([:], options: SessionOptions(filesInFlight: 9), transport: transport)
        try await enqueue(20, in: fixture)
        let run = try await fixture.start()
        await transport.wait { $0.asking == 9 }
        transport.open()
        #expect(try await run.value?.isFinished == true)
        #expect(transport.seen.peak == 9)
        await fixture.close()
    }

    @Test func interruptionReleasesWaitingFiles() async throws {
        let transport = PreparingTransport()
        let fixture = try await RunFixture([:], transport: transport)
        try await enqueue(20, in: fixture)
        let run = try await fixture.start()
        await transport.wait { $0.saving == 12 && $0.asking == 6 }
        fixture.cancelRun()
        _ = try await run.value
        #expect(transport.seen.asking == 0)
        #expect(transport.seen.saving == 12)
        await fixture.close()
    }

    @Test func firstWaitingFileIsNext() async throws {
        turns.setLimit(1)
        try await turns.wait(for: 0)
        // A file with a turn never waits.
        try await turns.wait(for: 0)
        let order = Locked<[Int64]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for position in [Int64(3), 1, 2] {
                group.addTask {
                    try await turns.wait(for: position)
                    order.withLock { $0.append(position) }
                    turns.end(position)
                }
                while !turns.isKept(position) { await Task.yield() }
            }
            // Ending the turn of a file without one has no effect.
            turns.end(7)
            #expect(turns.isKept(1))
            turns.end(0)
            try await group.waitForAll()
        }
        #expect(order.withLock { $0 } == [1, 2, 3])
        #expect(!turns.isKept(1))
    }

    @Test func higherLimitPermitsMoreFiles() async throws {
        turns.setLimit(1)
        try await turns.wait(for: 0)
        let other = Task { try await turns.wait(for: 1) }
        while !turns.isKept(1) { await Task.yield() }
        turns.setLimit(2)
        try await other.value
    }

    @Test func cancellationEndsWait() async throws {
        turns.setLimit(1)
        try await turns.wait(for: 0)
        let other = Task { try await turns.wait(for: 1) }
        while !turns.isKept(1) { await Task.yield() }
        other.cancel()
        await #expect(throws: CancellationError.self) { try await other.value }
        #expect(!turns.isKept(1))
        turns.end(0)
        try await turns.wait(for: 2)
    }
}

/// Saves a checkpoint of each file before its request. No response arrives before ``open()``.
private final class PreparingTransport: Transport {
    struct Seen: Sendable {
        var saving = 0
        var asking = 0
        var peak = 0
        var asked: [Int] = []
        var isOpen = false
    }

    let id: TransportID = "memory"
    let smallFilesAhead = 6
    private let state = Locked(Seen())

    var seen: Seen { state.withLock { $0 } }

    func open() { state.withLock { $0.isOpen = true } }

    func wait(_ condition: (Seen) -> Bool) async {
        while !condition(seen) { await Task.yield() }
    }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        state.withLock { $0.saving += 1 }
        try await reporter.save(Checkpoint(data: Data("asked".utf8), confirmed: 0))
        state.withLock { seen in
            seen.asking += 1
            seen.peak = max(seen.peak, seen.asking)
            seen.asked.append(Int(attempt.remotePath.description) ?? -1)
        }
        defer { state.withLock { $0.asking -= 1 } }
        while !seen.isOpen {
            try Task.checkCancellation()
            await Task.yield()
        }
        return TransferReceipt(bytes: try attempt.source.size)
    }

    func shutdown() async {}
}
