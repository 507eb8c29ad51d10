import Foundation
import GRDB
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct AdoptionTests {
    private struct Refusal: Error {}

    /// The storage folders of queues that share a transport, and the progress that these queues reported.
    private struct Fixture {
        let folder: TemporaryFolder
        let memory = MemoryTransport(chunkSize: 1_000)
        let reports = Locked<[FileProgress]>([])
        /// Whether the progress observer of each queue rejects completions of files.
        let rejectsCompletions = Locked(false)

        init() throws { folder = try TemporaryFolder() }

        func open(
            _ name: String, rowsPerSweep: Int = QueueStore.maximumRowsPerSweep, storeObserver: (@Sendable (StoreStep) -> Void)? = nil
        ) async throws -> TransferQueue {
            var configuration = QueueConfiguration()
            configuration.logger.logLevel = .critical
            (configuration.rowsPerSweep, configuration.storeObserver) = (rowsPerSweep, storeObserver)
            configuration.progressObserver = { [reports, rejectsCompletions] _, progress in
                if case .completed = progress.event, rejectsCompletions.withLock(\.self) { throw Refusal() }
                reports.withLock { $0.append(progress) }
            }
            let queue = try await TransferQueue(
                storage: .folder(folder.path.appending(name)), transports: [memory], configuration: configuration)
            try await queue.save(Account("a", endpoints: [memory.endpoint()]))
            return queue
        }

        func draft() async throws -> SessionDraft {
            let paths = try ["one", "two"].map { try folder.file($0, size: 10_000) }
            return try await SessionDraft.withoutStore([.upload(paths, to: "a")])[0]
        }

        /// A session with 50 files, of which another queue has completed the first 30.
        func largeDraft() async throws -> SessionDraft {
            let paths = try (0..<50).map { try folder.file("\($0)", size: 100) }
            var draft = try await SessionDraft.withoutStore([.upload(paths, to: "a")])[0]
            let endpoint = memory.endpoint()
            draft.progress = (0..<30).map {
                FileProgress(position: Int64($0), event: .completed(TransferReceipt(bytes: 100), endpoint: endpoint))
            }
            return draft
        }

        /// Executes a statement in the database of the queue `name`, which must not be open.
        func execute(_ sql: String, in name: String) throws {
            let database = try DatabaseQueue(path: folder.path.appending(name).appending("queue.sqlite").string)
            try database.write { try $0.execute(sql: sql) }
            try database.close()
        }

        /// The latest progress of each file, which another queue gets with a draft.
        var progress: [FileProgress] {
            var latest: [FileProgress] = []
            for report in reports.withLock(\.self) {
                latest.removeAll { $0.position == report.position }
                latest.append(report)
            }
            return latest
        }
    }

    @Test func `a queue resumes the files of a session that another queue gave up`() async throws {
        let fixture = try Fixture()
        var draft = try await fixture.draft()
        let first = try await fixture.open("first")
        let gate = fixture.memory.gate("two", atByte: 4_000)
        try await first.adopt(draft)
        let firstEvents = first.events
        try await first.start()
        _ = await firstEvents.first { if case .itemCompleted(draft.id, position: 0, _) = $0 { true } else { nil } }
        try await gate.reached()
        try await first.withdraw(draft.id)
        #expect(await first.sessionIDs().isEmpty)
        // The first queue keeps the partial upload for the next queue.
        #expect(fixture.memory.partialCount == 1)
        await first.shutdown()
        #expect(fixture.memory.partialCount == 1)
        gate.open()

        draft.progress = fixture.progress
        let second = try await fixture.open("second")
        try await second.adopt(draft)
        let before = try await second.status(of: draft.id)
        #expect(before.statistics.filesDone == 1 && before.statistics.bytesDone >= 13_000)
        #expect(try await second.statistics().bytesDone == before.statistics.bytesDone)
        let events = second.events
        try await second.start()
        _ = await events.first { if case .completed(draft.id) = $0 { true } else { nil } }
        for name in ["one", "two"] {
            #expect(fixture.memory.contents(of: name) == (try Data(contentsOf: URL(filePath: fixture.folder.path.appending(name).string))))
        }
        let attempts = fixture.memory.attempts
        #expect(attempts.count { "\($0.path)" == "one" } == 1)
        #expect(attempts.last { "\($0.path)" == "two" }?.checkpoint?.confirmed ?? 0 >= 3_000)
        #expect(try await second.statistics().filesDone == 2)
        await second.shutdown()
    }

    @Test func `a queue does not store progress that its observer rejects`() async throws {
        let fixture = try Fixture()
        let draft = try await fixture.draft()
        let queue = try await fixture.open("first")
        fixture.rejectsCompletions.withLock { $0 = true }
        let events = queue.events
        try await queue.adopt(draft)
        try await queue.start()
        let failure = await events.first { event -> TransferError? in
            if case .attemptFailed(draft.id, let error, _) = event { error } else { nil }
        }
        #expect(failure?.message.contains("can't be recorded") == true)
        #expect(try await queue.status(of: draft.id).statistics.filesDone == 0)
        #expect(try await queue.items(of: draft.id, from: 0, limit: 2).map(\.state) == [.pending, .pending])
        try await queue.withdraw(draft.id)
        #expect(await queue.sessionIDs().isEmpty)
        await queue.shutdown()
    }

    @Test func `a large session is adopted in several transactions, with its progress`() async throws {
        let fixture = try Fixture()
        let draft = try await fixture.largeDraft()
        // The number of file rows that one transaction adds or changes.
        let rows = Locked((current: 0, largest: 0))
        let queue = try await fixture.open("first", rowsPerSweep: 20) { step in
            guard case .after(let statement) = step else { return }
            rows.withLock {
                if statement.hasPrefix("COMMIT") { $0.current = 0 }
                guard statement.hasPrefix("INSERT INTO file(") || statement.hasPrefix("UPDATE file ") else { return }
                $0.current += 1
                $0.largest = max($0.largest, $0.current)
            }
        }
        try await queue.adopt(draft)
        let largest = rows.withLock { $0.largest }
        #expect((10...20).contains(largest), "\(largest) rows in one transaction")
        #expect(await queue.sessionIDs() == [draft.id])
        let adopted = try await queue.status(of: draft.id)
        #expect(adopted.state == .waiting && adopted.statistics.files == 50 && adopted.statistics.filesDone == 30)
        await #expect(throws: QueueError(.invalidRequest, "The session \(draft.id) already exists.")) { try await queue.adopt(draft) }
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.status(of: draft.id).state == .completed)
        #expect(Set(fixture.memory.attempts.map { "\($0.path)" }) == Set((30..<50).map { "\($0)" }))
        await queue.shutdown()
    }

    /// A trigger rejects one of the files, as if the process had ended while the queue added the session.
    @Test func `a session that was only partly adopted never runs, and can be adopted again`() async throws {
        let fixture = try Fixture()
        let draft = try await fixture.largeDraft()
        try await fixture.open("first").shutdown()
        let condition = "WHEN NEW.position = 25 BEGIN SELECT RAISE(ABORT, 'ended'); END"
        try fixture.execute("CREATE TRIGGER ended BEFORE INSERT ON file \(condition)", in: "first")
        let first = try await fixture.open("first", rowsPerSweep: 20)
        await #expect(throws: QueueError.self) { try await first.adopt(draft) }
        await first.shutdown()
        try fixture.execute("DROP TRIGGER ended", in: "first")

        let second = try await fixture.open("first", rowsPerSweep: 20)
        #expect(await second.sessionIDs(beginningWith: "", limit: .max) == [draft.id])
        #expect(try await second.status(of: draft.id).statistics.files == 20)
        try await second.start()
        await second.waitUntilIdle()
        #expect(fixture.memory.attempts.isEmpty)
        try await second.withdraw(draft.id)
        try await second.adopt(draft)
        await second.waitUntilIdle()
        #expect(try await second.status(of: draft.id).state == .completed)
        #expect(fixture.memory.attempts.count == 20)
        await second.shutdown()
    }

    /// A fleet decides whether a session runs again after its end. So `runIfUnfinished` must not run an ended session again.
    @Test func `runIfUnfinished ends the delay of a session, but does not run an ended session again`() async throws {
        let fixture = try Fixture()
        let draft = try await fixture.draft()
        let queue = try await fixture.open("first")
        fixture.memory.failNext(with: TransferError(.transient, .serverError, "Not now.", retryAfter: .seconds(3_000)), for: "one")
        fixture.memory.failNext(with: TransferError(.permanent, .rejected, "No."), for: "one")
        let (failures, ends) = (queue.events, queue.events)
        try await queue.adopt(draft)
        try await queue.start()
        _ = await failures.first { if case .attemptFailed(draft.id, _, _) = $0 { true } else { nil } }
        try await queue.runIfUnfinished(draft.id)
        _ = await ends.first { if case .failed(draft.id, _) = $0 { true } else { nil } }
        try await queue.runIfUnfinished(draft.id)
        try await queue.runIfUnfinished(SessionID())
        #expect(try await queue.status(of: draft.id).state == .failed)
        await queue.shutdown()
    }

    @Test func `a session is adopted only once, but can be adopted again after its withdrawal`() async throws {
        let fixture = try Fixture()
        let draft = try await fixture.draft()
        let queue = try await fixture.open("first")
        try await queue.adopt(draft)
        await #expect(throws: QueueError(.invalidRequest, "The session \(draft.id) already exists.")) { try await queue.adopt(draft) }
        try await queue.withdraw(draft.id)
        try await queue.withdraw(draft.id)
        try await queue.adopt(draft)
        #expect(await queue.sessionIDs() == [draft.id])
        await queue.shutdown()
    }
}
