import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct FilesAheadTests {
    private let turns = RequestTurns()

    private func endpoint(_ host: String) -> Endpoint { Endpoint(transport: "memory", address: "memory://\(host)/") }

    private struct LimitedTransport: Transport {
        let id: TransportID = "memory"
        let smallFilesInFlight: Int

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            throw TransferError(.unsupported, .unsupported, "This transport sends nothing.")
        }

        func shutdown() async {}
    }

    /// Replaces the fixture's session with a session of `count` small files.
    private func enqueue(_ count: Int, in fixture: RunFixture) async throws {
        let path = try fixture.folder.file("x", size: 10)
        let items = (0..<count).map { ItemDraft(source: Data(path.string.utf8), destination: Data("\($0)".utf8), size: 10) }
        let draft = SessionDraft(id: SessionID(), account: "a", name: "many", items: items)
        try await fixture.store.commit([.deleteSession(1), .session(1, rank: 0, draft)])
    }

    @Test func limitsConcurrentRequests() async throws {
        let transport = PreparingTransport()
        let fixture = try await RunFixture([:], transport: transport)
        try await enqueue(200, in: fixture)
        let run = try await fixture.start()
        await transport.wait { $0.prepared == 12 && $0.activeRequests == 6 }
        // The six prepared files that have no request yet count as waiting, not as stalled.
        let live = try #require(fixture.liveRun.withLock { $0 })
        while live.activeFiles.count(where: \.awaitsSource) < 6 { await Task.yield() }
        #expect(live.activeFiles.count == 12)
        #expect(transport.activity.peak == 6)
        transport.open()
        #expect(try await run.value?.hasSucceeded == true)
        #expect(transport.activity.requested.sorted() == Array(0..<200))
        await fixture.close()
    }

    @Test func filesInFlightReplacesRequestLimit() async throws {
        let transport = PreparingTransport()
        let fixture = try await RunFixture([:], options: SessionOptions(filesInFlight: 9), transport: transport)
        try await enqueue(20, in: fixture)
        let run = try await fixture.start()
        await transport.wait { $0.activeRequests == 9 }
        transport.open()
        #expect(try await run.value?.hasSucceeded == true)
        #expect(transport.activity.peak == 9)
        await fixture.close()
    }

    @Test func interruptionReleasesWaitingFiles() async throws {
        let transport = PreparingTransport()
        let fixture = try await RunFixture([:], transport: transport)
        try await enqueue(20, in: fixture)
        let run = try await fixture.start()
        await transport.wait { $0.prepared == 12 && $0.activeRequests == 6 }
        fixture.cancelRun()
        _ = try await run.value
        #expect(transport.activity.activeRequests == 0)
        #expect(transport.activity.prepared == 12)
        await fixture.close()
    }

    @Test func waitingFilesTakeTurnsInOrder() async throws {
        _ = turns.limit(at: endpoint("a"), of: LimitedTransport(smallFilesInFlight: 1))
        try await turns.wait(for: 0)
        // A file that already has its turn does not wait again.
        try await turns.wait(for: 0)
        let order = Locked<[Int64]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for position in [Int64(3), 1, 2] {
                group.addTask {
                    try await turns.wait(for: position)
                    order.withLock { $0.append(position) }
                    turns.end(position)
                }
                while !turns.isWaitingForTurn(position) { await Task.yield() }
            }
            // Ending a turn has no effect if the file has no turn.
            turns.end(7)
            #expect(turns.isWaitingForTurn(1))
            turns.end(0)
            try await group.waitForAll()
        }
        #expect(order.withLock { $0 } == [1, 2, 3])
        #expect(!turns.isWaitingForTurn(1))
    }

    @Test func higherLimitPermitsMoreFiles() async throws {
        _ = turns.limit(at: endpoint("a"), of: LimitedTransport(smallFilesInFlight: 1))
        try await turns.wait(for: 0)
        let other = Task { try await turns.wait(for: 1) }
        while !turns.isWaitingForTurn(1) { await Task.yield() }
        _ = turns.limit(at: endpoint("b"), of: LimitedTransport(smallFilesInFlight: 2))
        try await other.value
    }

    @Test func cancellationEndsWait() async throws {
        _ = turns.limit(at: endpoint("a"), of: LimitedTransport(smallFilesInFlight: 1))
        try await turns.wait(for: 0)
        let other = Task { try await turns.wait(for: 1) }
        while !turns.isWaitingForTurn(1) { await Task.yield() }
        other.cancel()
        await #expect(throws: CancellationError.self) { try await other.value }
        #expect(!turns.isWaitingForTurn(1))
        turns.end(0)
        try await turns.wait(for: 2)
    }
}

/// A transport that saves a checkpoint of each file before it sends the file's request. No response arrives before ``open()``.
private final class PreparingTransport: Transport {
    struct Activity: Sendable {
        var prepared = 0
        var activeRequests = 0
        var peak = 0
        var requested: [Int] = []
        var isOpen = false
    }

    let id: TransportID = "memory"
    let smallFilesAhead = 6
    private let state = Locked(Activity())

    var activity: Activity { state.withLock { $0 } }

    func open() { state.withLock { $0.isOpen = true } }

    func wait(_ condition: (Activity) -> Bool) async {
        while !condition(activity) { await Task.yield() }
    }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        state.withLock { $0.prepared += 1 }
        try await reporter.save(Checkpoint(data: Data("saved".utf8), confirmed: 0))
        state.withLock { activity in
            activity.activeRequests += 1
            activity.peak = max(activity.peak, activity.activeRequests)
            activity.requested.append(Int(attempt.remotePath.description) ?? -1)
        }
        defer { state.withLock { $0.activeRequests -= 1 } }
        while !activity.isOpen {
            try Task.checkCancellation()
            await Task.yield()
        }
        return TransferReceipt(bytes: try attempt.source.size)
    }

    func shutdown() async {}
}
