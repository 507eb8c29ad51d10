import Foundation
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// A queue that continues the sessions of another queue.
@Suite struct AdoptionTests {
    private struct Refusal: Error {}

    /// Two storage folders with a common transport, and the progress that the first queue reported.
    private struct Fixture {
        let folder: TemporaryFolder
        let memory = MemoryTransport(chunkSize: 1_000)
        let reports = Locked<[FileProgress]>([])
        /// Whether the progress observer of each queue rejects completions of files.
        let refuses = Locked(false)

        init() throws { folder = try TemporaryFolder() }

        func open(_ name: String) async throws -> TransferQueue {
            var configuration = QueueConfiguration()
            configuration.logger.logLevel = .critical
            configuration.progressObserver = { [reports, refuses] _, progress in
                if case .completed = progress.event, refuses.withLock(\.self) { throw Refusal() }
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

        /// The latest report about each file, in the form in which another queue receives the progress.
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
        // The partial upload is kept, because another queue continues it.
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

    @Test func `a queue does not record progress that its observer rejects`() async throws {
        let fixture = try Fixture()
        let draft = try await fixture.draft()
        let queue = try await fixture.open("first")
        fixture.refuses.withLock { $0 = true }
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

    @Test func `a session is adopted only once, and again after its withdrawal`() async throws {
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
