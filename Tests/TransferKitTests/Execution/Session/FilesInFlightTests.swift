import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct FilesInFlightTests {
    private let busy = TransferError(.transient, .serverError, "The server is busy.", retryAfter: .seconds(30))

    @Test(arguments: [nil, 1, 3, 64])
    func startsFilesInOrder(_ limit: Int?) async throws {
        let transport = InstantTransport()
        let fixture = try await RunFixture([:], options: SessionOptions(filesInFlight: limit), transport: transport)
        try await enqueue(600, in: fixture)
        guard case .finished(nil, false) = try await fixture.run() else { throw Unexpected() }
        #expect(transport.paths == (0..<600).map(String.init))
        #expect(transport.peak <= limit ?? 6)
        #expect(try await fixture.store.sessions([1]).first?.status.statistics.filesDone == 600)
        await fixture.close()
    }

    @Test func transportDeterminesNumberOfSmallFiles() async throws {
        let transport = InstantTransport(smallFilesInFlight: 20, meeting: 20)
        let fixture = try await RunFixture([:], transport: transport)
        try await enqueue(600, in: fixture)
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(transport.peak == 20)
        await fixture.close()
    }

    /// The server creates a record, such as a database row, for each file.
    @Test func nextFileStartsAfterCompletionOfPreviousFileIsStored() async throws {
        let transport = RecordedTransport()
        let fixture = try await RunFixture([:], options: SessionOptions(filesInFlight: 1), transport: transport)
        transport.store.withLock { $0 = fixture.store }
        try await enqueue(40, in: fixture)
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(transport.filesDone.withLock { $0 } == Array(0..<40))
        await fixture.close()
    }

    /// Replaces the fixture's session with a session of `count` small files.
    private func enqueue(_ count: Int, in fixture: RunFixture) async throws {
        let path = try fixture.folder.file("x", size: 10)
        let items = (0..<count).map { ItemDraft(source: Data(path.string.utf8), destination: Data("\($0)".utf8), size: 10) }
        let draft = SessionDraft(id: SessionID(), account: "a", name: "many", items: items)
        try await fixture.store.commit([.deleteSession(1), .session(1, rank: 0, draft)])
    }

    @Test func appDeterminesNumberOfFiles() async throws {
        let fixture = try await RunFixture(["1": 9, "2": 9, "3": 9, "4": 9], options: SessionOptions(filesInFlight: 3))
        let gates = ["1", "2", "3", "4"].map { fixture.memory.gate($0) }
        let run = try await fixture.start()
        for gate in gates.prefix(3) { try await gate.reached() }
        #expect(fixture.memory.attempts.count == 3)
        gates[1].open()
        try await gates[3].reached()
        #expect(fixture.memory.runningCount == 3)
        for gate in gates { gate.open() }
        #expect(try await run.value?.hasSucceeded == true)
        await fixture.close()
    }

    @Test func sendsLargeFileAloneAndInOrder() async throws {
        let large = Int(FileWindow.smallSize) + 1
        let memory = MemoryTransport()
        let fixture = try await RunFixture(["1": 9, "2": 9, "3": large, "4": 9, "5": 9], memory: memory)
        let (second, third) = (memory.gate("2"), memory.gate("3"))
        let run = try await fixture.start()
        try await second.reached()
        #expect(memory.attempts.map(\.path.description) == ["1", "2"])
        second.open()
        try await third.reached()
        #expect(memory.runningCount == 1 && memory.attempts.count == 3)
        third.open()
        #expect(try await run.value?.hasSucceeded == true)
        #expect(memory.attempts.map(\.path.description) == ["1", "2", "3", "4", "5"])
        await fixture.close()
    }

    @Test func interruptionEndsAttemptsBeforeRun() async throws {
        let fixture = try await RunFixture(["1": 9_000, "2": 9_000, "3": 9_000, "4": 9_000, "5": 9_000, "6": 9_000, "7": 9_000])
        let names = ["1", "2", "3", "4", "5", "6"]
        let gates = names.map { fixture.memory.gate($0, atByte: 4_000) }
        let run = try await fixture.start()
        for gate in gates { try await gate.reached() }
        fixture.cancelRun()
        #expect(try await run.value?.isInterrupted == true)
        #expect(fixture.memory.runningCount == 0)
        #expect(fixture.memory.attempts.map(\.outcome) == Array(repeating: .cancelled, count: 6))
        for gate in gates { gate.open() }
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(fixture.memory.attempts.dropFirst(6).map(\.startOffset).sorted() == [0, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000])
        await fixture.close()
    }

    @Test func interruptedRunMayComplete() async throws {
        let stubborn = UninterruptibleTransport()
        let fixture = try await RunFixture(["1": 10], transport: stubborn)
        let run = try await fixture.start()
        await stubborn.waitUntilBegun()
        fixture.cancelRun()
        stubborn.finish()
        #expect(try await run.value?.hasSucceeded == true)
        await fixture.close()
    }

    @Test func failedFileDoesNotAffectOtherFiles() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10, "3": 10, "4": 10, "5": 10, "6": 10, "7": 10, "8": 10])
        fixture.memory.failNext(with: TransferError(.permanent, .rejected, "Not this one."), for: "4")
        let outcome = try await fixture.run()
        #expect(outcome?.failure?.code == .itemsFailed && outcome?.failure?.message.contains("1 of 8") == true)
        #expect(Set(fixture.memory.completePaths.map(\.description)) == ["1", "2", "3", "5", "6", "7", "8"])
        #expect(fixture.errors(of: 3).map(\.message) == ["Not this one."])
        await fixture.close()
    }

    @Test func longWaitOfFileDoesNotDelayOtherFilesAndEndsRun() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10, "3": 10], options: SessionOptions(filesInFlight: 1))
        fixture.memory.failNext(with: busy, for: "1")
        let outcome = try await fixture.run()
        #expect(outcome?.delay == .seconds(30))
        #expect(fixture.memory.attempts.map(\.path.description) == ["1", "2", "3"])
        #expect(
            fixture.eventNames == [
                "hostBusy", "endpointFailed", "attemptFailed", "connected", "endpointWorks", "completed", "completed", "ended",
            ])
        fixture.clock.advance(by: .seconds(30))
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(fixture.memory.attempts.last?.number == 2)
        await fixture.close()
    }

    @Test func dueFileStartsFirst() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10, "3": 10], options: SessionOptions(filesInFlight: 1))
        fixture.memory.failNext(with: busy, for: "1")
        let gate = fixture.memory.gate("2")
        let run = try await fixture.start()
        try await gate.reached()
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        gate.open()
        #expect(try await run.value?.hasSucceeded == true)
        #expect(fixture.memory.attempts.map(\.path.description) == ["1", "2", "1", "3"])
        await fixture.close()
    }

    @Test func runReturnsShortestWaitOfItsFiles() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10], options: SessionOptions(filesInFlight: 1))
        fixture.memory.failNext(with: busy, for: "1")
        fixture.memory.failNext(with: TransferError(.transient, .serverError, "Busy.", retryAfter: .seconds(9)), for: "2")
        #expect(try await fixture.run()?.delay == .seconds(9))
        fixture.clock.advance(by: .seconds(9))
        #expect(try await fixture.run()?.delay == .seconds(21))
        #expect(fixture.memory.attempts.map(\.path.description) == ["1", "2", "2"])
        fixture.clock.advance(by: .seconds(21))
        #expect(try await fixture.run()?.hasSucceeded == true)
        await fixture.close()
    }

    @Test func shortWaitOfFileKeepsItsSlot() async throws {
        let fixture = try await RunFixture(["1": 10, "2": 10, "3": 10], options: SessionOptions(filesInFlight: 2))
        fixture.memory.failNext(with: TransferError(.transient, .connectionLost, "It broke."), for: "1")
        let gate = fixture.memory.gate("2")
        let run = try await fixture.start()
        try await gate.reached()
        await fixture.clock.waitForSleep(of: .seconds(1))
        #expect(
            fixture.memory.attempts.map(\.path.description) == ["1", "2"], "the first file keeps its slot, so the third file can't start")
        gate.open()
        try await fixture.memory.attemptsStarted(3)
        fixture.clock.advance(by: .seconds(1))
        #expect(try await run.value?.hasSucceeded == true)
        #expect(fixture.memory.attempts.map(\.path.description) == ["1", "2", "3", "1"])
        await fixture.close()
    }

    @Test func stopsAfterRepeatedServerFailure() async throws {
        let fixture = try await RunFixture([:])
        try await enqueue(100, in: fixture)
        fixture.memory.failNext(100, with: busy)
        #expect(try await fixture.run()?.delay == .seconds(30))
        #expect(fixture.memory.attempts.count < 30)
        await fixture.close()
    }

    @Test func completionsOfSmallFilesShareTransactions() async throws {
        let transport = InstantTransport()
        let fixture = try await RunFixture([:], transport: transport)
        try await enqueue(640, in: fixture)
        #expect(try await fixture.run()?.hasSucceeded == true)
        // 12 transactions: the first group, committed with the report of the connection; ten full groups; and the rest at the end. The
        // clock stands still, so the queue commits no group because of its age.
        #expect(fixture.commits <= 12)
        #expect(try await fixture.store.sessions([1]).first?.status.statistics.filesDone == 640)
        await fixture.close()
    }

    private struct Unexpected: Error {}
}

private final class InstantTransport: Transport {
    let id: TransportID = "memory"
    let smallFilesInFlight: Int
    private let meeting: Int
    private let seen = Locked((paths: [String](), running: 0, peak: 0, waiting: [CheckedContinuation<Void, Never>]()))

    /// - Parameter meeting: The number of attempts that must run concurrently before the first ones continue.
    init(smallFilesInFlight: Int = 6, meeting: Int = 0) {
        self.smallFilesInFlight = smallFilesInFlight
        self.meeting = meeting
    }

    var paths: [String] { seen.withLock { $0.paths } }
    var peak: Int { seen.withLock { $0.peak } }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        seen.withLock { seen in
            seen.paths.append(attempt.remotePath.description)
            seen.running += 1
            seen.peak = max(seen.peak, seen.running)
        }
        if meeting > 0 { await meet() } else { await Task.yield() }
        seen.withLock { $0.running -= 1 }
        return TransferReceipt(bytes: try attempt.source.size)
    }

    private func meet() async {
        await withCheckedContinuation { continuation in
            let met = seen.withLock { seen in
                seen.waiting.append(continuation)
                guard seen.peak >= meeting else { return [CheckedContinuation<Void, Never>]() }
                defer { seen.waiting = [] }
                return seen.waiting
            }
            for continuation in met { continuation.resume() }
        }
    }

    func shutdown() async {}
}

/// Reports a record for each file, and then reads the number of completed files from the database.
private final class RecordedTransport: Transport {
    let id: TransportID = "memory"
    let store = Locked<QueueStore?>(nil)
    let filesDone = Locked<[Int]>([])

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try await reporter.reportRecord()
        let status = try await store.withLock { $0 }?.sessions([1]).first?.status
        filesDone.withLock { $0.append(status?.statistics.filesDone ?? -1) }
        return TransferReceipt(bytes: try attempt.source.size)
    }

    func shutdown() async {}
}
