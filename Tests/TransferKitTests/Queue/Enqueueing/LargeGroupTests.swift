import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// The work for operations on very many sessions, which grows only in proportion to the number of sessions.
@Suite struct LargeGroupTests {
    private static let count = 20_000

    /// The statements that a queue executes, without those of readers.
    private struct Work: Equatable {
        var statements = 0
        var commits = 0
        /// The written rows with the scheduling data of sessions.
        var rows = 0
        /// The maximum of ``rows`` in one transaction.
        var largest = 0
        private var current = 0

        mutating func record(_ step: StoreStep) {
            guard case .after(let sql) = step else { return }
            statements += 1
            if sql.hasPrefix("COMMIT") { (commits, current) = (commits + 1, 0) }
            guard sql.hasPrefix("INSERT INTO schedule") else { return }
            (rows, current) = (rows + 1, current + 1)
            largest = max(largest, current)
        }
    }

    private let fixture: QueueFixture
    private let work = Locked(Work())

    init() throws {
        fixture = try QueueFixture()
    }

    private func open() async throws -> TransferQueue {
        work.withLock { $0 = Work() }
        return try await fixture.open(storeObserver: { [work] step in work.withLock { $0.record(step) } })
    }

    private func store(_ count: Int) async throws {
        let store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        let drafts = (0..<count).map { _ in SessionDraft.draft() }
        var sessions = NewSessions(drafts: drafts, createdAt: .now)
        for (index, draft) in drafts.enumerated() {
            sessions.append(Entry(id: draft.id, key: Int64(index) + 1, rank: Int64(index), account: 1, state: .waiting))
        }
        try await store.commit([.saveAccount(1, .memory("a")), .insertSessions(sessions)])
        await store.close()
    }

    /// An operation on all sessions writes each session once, and at most 10,000 sessions in each transaction.
    @Test(arguments: [SessionOperation.runNext, .hold, .cancel()])
    func operationWritesEachSessionOnce(_ operation: SessionOperation) async throws {
        try await store(Self.count)
        let queue = try await open()
        work.withLock { $0 = Work() }
        #expect(try await queue.apply(operation, to: .all).count == Self.count)
        let result = work.withLock(\.self)
        #expect(result.rows == Self.count && result.largest <= 10_000, "\(result)")
        #expect(result.commits == Self.count / 10_000 && result.statements <= 4 * Self.count + 100, "\(result)")
        await queue.shutdown()
    }

    /// The queue opens with very many sessions for which the app called `runNext` in an earlier process. It executes as many statements as
    /// with few sessions.
    @Test func openingWithMarkedSessionsExecutesFewStatements() async throws {
        var statements: [Int] = []
        for count in [10, Self.count] {
            let fixture = try LargeGroupTests()
            try await fixture.store(count)
            var queue = try await fixture.open()
            try await queue.apply(.runNext, to: .all)
            let ids = await queue.sessionIDs()
            await queue.shutdown()
            queue = try await fixture.open()
            #expect(await queue.sessionIDs() == ids)
            statements.append(fixture.work.withLock(\.statements))
            await queue.shutdown()
        }
        #expect(statements[1] <= statements[0] + 20, "\(statements)")
    }

    /// All sessions get a start priority, one after another, and lose it again. Each change moves few keys of the scheduler's indexes.
    @Test(arguments: [QueueOrdering.inOrder, .strict]) func changesMoveFewKeys(_ ordering: QueueOrdering) throws {
        var scheduler = Scheduler(Scheduler.Settings(transports: ["memory"], ordering: ordering))
        _ = try scheduler.perform(.saveAccount(.memory("a")))
        var drafts = (0..<Self.count).map { _ in SessionDraft.draft() }
        while !drafts.isEmpty {
            _ = try scheduler.perform(.enqueue(Array(drafts.prefix(10_000))))
            drafts.removeFirst(10_000)
        }
        for operation in [SessionOperation.runNext, .hold, .release] {
            // From the last session to the first, each session goes before all others.
            for key in (1...SessionKey(Self.count)).reversed() where key % 8 == 0 {
                guard let id = scheduler.view(key)?.id else { continue }
                _ = try scheduler.perform(.perform(operation, .one(.id(id))))
            }
            #expect(scheduler.sessionIndex.largestPart <= 1_024, "\(operation)")
        }
        for operation in [SessionOperation.runNext, .hold] {
            _ = try scheduler.perform(.perform(operation, .group(.all)))
            #expect(scheduler.sessionIndex.largestPart <= 1_024, "\(operation)")
        }
    }
}
