import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct DownloadResumeTests {
    private let fixture: DownloadFixture

    init() throws {
        fixture = try DownloadFixture()
    }

    private struct LosingTransport: Transport {
        let id = TransportID(rawValue: "memory")
        let memory: MemoryTransport
        let losses: Locked<Int>

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            let receipt = try await memory.perform(attempt, reporting: reporter)
            let isLost = losses.withLock { losses in
                losses -= 1
                return losses >= 0
            }
            if isLost { throw TransferError(.transient, .connectionLost, "The response was lost.") }
            return receipt
        }

        func shutdown() async {}
    }

    private var attempts: [MemoryAttempt] { fixture.memory.attempts }

    @Test func resumesFromSyncedBytesAfterLostConnection() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        fixture.memory.faults.append(.cut(afterBytes: 4_500))
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        await fixture.queue.clock.waitForSleep(of: .seconds(1))
        #expect(try fixture.partFiles().count == 1 && fixture.content("file") == nil)
        #expect(try await session.status.statistics.bytesDone == 4_000)
        fixture.queue.clock.advance(by: .seconds(1))
        let end = try await session.value
        #expect(end.statistics.bytesDone == 10_000 && attempts.map(\.startOffset) == [0, 4_000])
        #expect(fixture.content("file") == DownloadFixture.content(10_000))
        await queue.waitUntilIdle()
        #expect(try fixture.names() == ["file"])
        await queue.shutdown()
    }

    @Test func resumesInNextProcess() async throws {
        var queue = try await fixture.queue.openWithAccounts()
        let gate = fixture.memory.gate("file", atByte: 6_000)
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        try await gate.reached()
        await queue.shutdown()
        gate.open()
        queue = try await fixture.queue.open()
        let status = try await queue.session(session.id).status
        #expect(status.statistics.bytesDone == 6_000 && status.statistics.bytesTotal == 10_000)
        try await queue.start()
        _ = try await queue.session(session.id).value
        #expect(attempts.map(\.startOffset) == [0, 6_000] && fixture.content("file") == DownloadFixture.content(10_000))
        await queue.shutdown()
    }

    /// The attempt fails after the final rename, as if the process had been killed before the commit.
    @Test(arguments: OverwritePolicy.allCases, [1, 10_000]) func recognizesCompletedFileWhoseCompletionWasNotStored(
        _ policy: OverwritePolicy, _ size: Int
    )
        async throws
    {
        let losing = LosingTransport(memory: fixture.memory, losses: Locked(1))
        let queue = try await fixture.queue.open(transports: [losing])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint()]))
        let session = try await queue.enqueue(fixture.request("file", size: size, options: SessionOptions(overwrite: policy)))
        fixture.memory.provide(DownloadFixture.content(size), as: "file", modificationTime: 1_000_000_000)
        try await queue.start()
        await fixture.queue.clock.waitForSleep(of: .seconds(1))
        #expect(fixture.content("file") == DownloadFixture.content(size))
        fixture.queue.clock.advance(by: .seconds(1))
        #expect(try await session.value.statistics.bytesDone == Int64(size))
        #expect(attempts.map(\.bytesMoved) == [Int64(size), 0])
        await queue.waitUntilIdle()
        #expect(try fixture.names() == ["file"])
        await queue.shutdown()
    }

    @Test func restartsIfServerFileChanged() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        fixture.memory.faults.append(.cut(afterBytes: 5_000))
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        await fixture.queue.clock.waitForSleep(of: .seconds(1))
        fixture.memory.provide(DownloadFixture.content(7_000, seed: 1), as: "file")
        fixture.queue.clock.advance(by: .seconds(1))
        #expect(try await session.value.statistics.bytesTotal == 7_000)
        #expect(fixture.content("file") == DownloadFixture.content(7_000, seed: 1))
        #expect(Set(attempts.map(\.transferID)).count == 2)
        await queue.waitUntilIdle()
        #expect(try fixture.names() == ["file"])
        await queue.shutdown()
    }

    @Test func restartsIfPartFileIsMissing() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        fixture.memory.faults.append(.cut(afterBytes: 5_000))
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        await fixture.queue.clock.waitForSleep(of: .seconds(1))
        for name in try fixture.partFiles() { try FileManager.default.removeItem(atPath: fixture.target.appending(name).string) }
        fixture.queue.clock.advance(by: .seconds(1))
        #expect(try await session.value.statistics.bytesDone == 10_000)
        #expect(fixture.content("file") == DownloadFixture.content(10_000))
        await queue.shutdown()
    }

    @Test func usesSeparatePartFileForEachEndpoint() async throws {
        let queue = try await fixture.queue.open()
        let hosts = ["a", "b"].map { fixture.memory.endpoint(host: $0) }
        try await queue.save(Account("a", endpoints: hosts, fallbackAfter: .zero))
        fixture.memory.faults.append(.cut(afterBytes: 5_000))
        let options = SessionOptions(retry: RetryPolicy(base: .milliseconds(100), maximumDelay: .milliseconds(100)))
        let session = try await queue.enqueue(fixture.request("file", options: options))
        fixture.memory.faults.append(
            .fail(TransferError(.unreachable, .connectionRefused, "No server responds.")), times: 3)
        let gate = fixture.memory.gate("file", atByte: 9_000)
        try await queue.start()
        let clock = fixture.queue.clock
        let clockTask = Task {
            while !Task.isCancelled {
                await clock.waitForSleep(of: .milliseconds(100))
                // If the clock advanced during an attempt, the attempt would look stalled.
                if fixture.memory.runningCount == 0 { clock.advance(by: .milliseconds(100)) } else { await Task.yield() }
            }
        }
        try await gate.reached()
        clockTask.cancel()
        #expect(try fixture.partFiles().count == 2)
        #expect(attempts.last?.endpoint == hosts[1] && attempts.last?.startOffset == 0)
        gate.open()
        _ = try await session.value
        #expect(fixture.content("file") == DownloadFixture.content(10_000))
        await queue.waitUntilIdle(scheduled: false)
        #expect(try fixture.names() == ["file"])
        await queue.shutdown()
    }

    // MARK: Cancellation and removal

    enum Ending: CaseIterable, Sendable {
        case cancel, remove, cancelWhileStopped, removeAfterCancellation
    }

    @Test(arguments: Ending.allCases) func removesPartFileOfEndedSession(_ ending: Ending) async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let gate = fixture.memory.gate("file", atByte: 5_000)
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        try await gate.reached()
        #expect(try fixture.partFiles().count == 1)
        switch ending {
        case .cancel: try await queue.cancel(session.id, discarding: true)
        case .remove: try await queue.remove(session.id)
        case .cancelWhileStopped:
            try await queue.hold(session.id)
            try await queue.stopAndWait()
            #expect(try fixture.partFiles().count == 1)
            try await queue.cancel(session.id, discarding: true)
        case .removeAfterCancellation:
            try await queue.cancel(session.id)
            try await queue.stopAndWait()
            await queue.waitUntilContentRemoved()
            #expect(try fixture.partFiles().count == 1)
            try await queue.remove(session.id)
        }
        try await queue.stopAndWait()
        await queue.waitUntilContentRemoved()
        #expect(try fixture.names() == [], "part files are removed even while the queue is stopped")
        await queue.shutdown()
    }

    @Test func resumesOnRetryAfterCancellation() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let gate = fixture.memory.gate("file", atByte: 5_000)
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        try await gate.reached()
        try await session.cancel()
        while try await session.status.phase == .ending { await Task.yield() }
        gate.open()
        try await session.retry()
        #expect(try await session.value.statistics.bytesDone == 10_000)
        #expect(attempts.map(\.startOffset) == [0, 5_000])
        await queue.shutdown()
    }

    @Test func restartsOnRetryAfterDiscardingCancellation() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let gate = fixture.memory.gate("file", atByte: 5_000)
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        try await gate.reached()
        try await queue.cancel(session.id, discarding: true)
        while try await session.status.phase == .ending { await Task.yield() }
        gate.open()
        try await queue.retry(session.id)
        #expect(try await session.value.statistics.bytesDone == 10_000)
        #expect(attempts.map(\.startOffset) == [0, 0])
        await queue.waitUntilIdle()
        #expect(try fixture.names() == ["file"])
        await queue.shutdown()
    }

    @Test func removesPartFileLeftByKilledProcess() async throws {
        var queue = try await fixture.queue.openWithAccounts()
        let gate = fixture.memory.gate("file", atByte: 5_000)
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        try await gate.reached()
        try await queue.hold(session.id)
        await queue.shutdown()
        // Stores the pending removal of the part file, as if the process had been killed before the removal.
        let store = try await QueueStore.open(.folder(fixture.queue.folder.path.appending("store")), clock: .system)
        try await store.commit([.discardPartial(1)])
        #expect(try await store.dueDiscards(at: .distantFuture, limit: 9, isLocalOnly: true).due.count == 1)
        await store.close()
        #expect(try fixture.partFiles().count == 1)
        queue = try await fixture.queue.open()
        await queue.waitUntilContentRemoved()
        #expect(try fixture.names() == [])
        await queue.shutdown()
    }

    @Test func removesPartFileOfDownloadWithoutCheckpoint() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        let gate = fixture.memory.gate("file", atByte: 0)
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        // No byte was received, so the transport has not saved a checkpoint.
        try await gate.reached()
        #expect(try fixture.partFiles().count == 1)
        try await queue.remove(session.id)
        try await queue.stopAndWait()
        await queue.waitUntilContentRemoved()
        #expect(try fixture.names() == [])
        await queue.shutdown()
    }

    @Test func doesNotRemovePartFileThroughLink() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        fixture.memory.provide(DownloadFixture.content(10_000), as: "file")
        let gate = fixture.memory.gate("file", atByte: 5_000)
        let session = try await queue.enqueue(
            .download(items: [.remote(try RemotePath("file"), as: "way/file")], from: "a", to: fixture.target))
        try await queue.start()
        try await gate.reached()
        let elsewhere = fixture.queue.folder.path.appending("elsewhere")
        try FileManager.default.moveItem(atPath: fixture.target.appending("way").string, toPath: elsewhere.string)
        try FileManager.default.createSymbolicLink(
            atPath: fixture.target.appending("way").string, withDestinationPath: elsewhere.string)
        try await queue.remove(session.id)
        try await queue.stopAndWait()
        await queue.waitUntilContentRemoved()
        #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.string).count == 1)
        await queue.shutdown()
    }

    @Test func waitsForSpaceOnFullDisk() async throws {
        let queue = try await fixture.queue.openWithAccounts()
        fixture.memory.failNext(with: .destinationUnavailable(fixture.target.appending("file"), errno: 28))
        let session = try await queue.enqueue(fixture.request("file"))
        try await queue.start()
        await fixture.queue.clock.waitForSleep(of: .seconds(30))
        let status = try await session.status
        #expect(status.state == .waiting && status.error?.code == .diskFull)
        fixture.queue.clock.advance(by: .seconds(30))
        #expect(try await session.value.statistics.bytesDone == 10_000)
        await queue.shutdown()
    }

    @Test func rejectsTransportWithReservedID() async throws {
        struct Impostor: Transport {
            let id: TransportID = "transferkit-parts"
            func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
                throw CancellationError()
            }
            func shutdown() async {}
        }
        let error = await #expect(throws: QueueError.self) { try await fixture.queue.open(transports: [Impostor()]) }
        #expect(error?.code == .duplicateTransport)
    }
}
