import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct ReplacedStoreTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private var storage: String { fixture.folder.path.appending("store").string }

    private func expectRefusal(_ queue: TransferQueue) async throws {
        let events = queue.events
        let error = try await #require(throws: QueueError.self) { try await queue.enqueue(try fixture.upload("two")) }
        #expect(error.code == .storageUnavailable && error.message.contains("deleted or replaced"))
        let failure = await events.first { if case .storageFailed(let error) = $0 { error } else { nil } }
        #expect(failure?.code == .storageUnavailable)
        #expect(await queue.sessionIDs().count == 1)
        #expect(try await queue.storeHealth().problems.contains { $0.contains("deleted or replaced") })
    }

    @Test func rejectsChangesInDeletedFolder() async throws {
        let queue = try await fixture.openWithAccounts()
        try await queue.enqueue(try fixture.upload("one"))
        try FileManager.default.removeItem(atPath: storage)
        try await expectRefusal(queue)
        await queue.shutdown()
    }

    @Test func rejectsChangesInReplacedFolder() async throws {
        let queue = try await fixture.openWithAccounts()
        try await queue.enqueue(try fixture.upload("one"))
        try FileManager.default.copyItem(atPath: storage, toPath: storage + "-copy")
        try FileManager.default.moveItem(atPath: storage, toPath: storage + "-away")
        try FileManager.default.moveItem(atPath: storage + "-copy", toPath: storage)
        try await expectRefusal(queue)
        await queue.shutdown()
    }

    @Test func usesRestoredFolderAgain() async throws {
        let queue = try await fixture.openWithAccounts()
        try await queue.enqueue(try fixture.upload("one"))
        try FileManager.default.moveItem(atPath: storage, toPath: storage + "-away")
        try await expectRefusal(queue)
        try FileManager.default.moveItem(atPath: storage + "-away", toPath: storage)
        try await queue.enqueue(try fixture.upload("two"))
        #expect(await queue.sessionIDs().count == 2)
        #expect(try await queue.storeHealth().problems.isEmpty)
        await queue.shutdown()
        let reopened = try await fixture.open()
        #expect(await reopened.sessionIDs().count == 2)
        await reopened.shutdown()
    }

    private enum ChangeOutsideCommits: CaseIterable {
        case dropQuarantined, restoreQuarantined, sweep, trim

        /// Makes the change. Returns the error, or nil if the change succeeds.
        func failure(_ store: QueueStore, _ limits: StoreLimits) async -> QueueError? {
            switch self {
            case .dropQuarantined: await error { () async throws(QueueError) in try await store.dropQuarantined(1) }
            case .restoreQuarantined: await error { () async throws(QueueError) in try await store.restoreQuarantined(1) }
            case .trim: await error { () async throws(QueueError) in _ = try await store.trim(limits) }
            case .sweep: await sweepError(store)
            }
        }

        private func error(_ body: () async throws(QueueError) -> Void) async -> QueueError? {
            do throws(QueueError) {
                try await body()
                return nil
            } catch {
                return error
            }
        }

        private func sweepError(_ store: QueueStore) async -> QueueError? {
            do throws(SweepFailure) {
                _ = try await store.sweep()
                return nil
            } catch {
                #expect(!error.isPermanent, "the deletion continues when the folder is back")
                return error.error
            }
        }
    }

    @Test(arguments: ChangeOutsideCommits.allCases) private func rejectsChangesOutsideCommits(_ change: ChangeOutsideCommits) async throws {
        let store = try await QueueStore.open(.folder(fixture.folder.path.appending("store")), clock: .system)
        try await store.commit([.saveAccount(1, .memory("a"))])
        for key in SessionKey(1)...3 { try await store.commit([.session(key, rank: 0, .draft()), .quarantine(key, "for a test")]) }
        try FileManager.default.moveItem(atPath: storage, toPath: storage + "-away")
        var limits = StoreLimits()
        limits.quarantined = 1
        for _ in 0..<2 {
            let error = try #require(await change.failure(store, limits))
            #expect(error.code == .storageUnavailable && error.message.contains("deleted or replaced"), "\(error)")
        }
        try FileManager.default.moveItem(atPath: storage + "-away", toPath: storage)
        #expect(try await store.quarantinedCount() == 3)
        try await store.dropQuarantined(1)
        #expect(try await store.trim(limits))
        #expect(try await store.quarantinedCount() < 3)
        await store.close()
    }

    /// The folder disappears after ``QueueStore`` has checked it, but before the commit, so the commit must fail.
    @Test func rejectsCommitToLostFile() async throws {
        let path = fixture.folder.path.appending("store")
        let store = try await QueueStore.open(.folder(path), clock: .system) { step in
            guard case .before(let sql) = step, sql.contains("INSERT INTO account") else { return }
            try? FileManager.default.moveItem(atPath: path.string, toPath: path.string + "-away")
        }
        await #expect(throws: QueueError.self) { try await store.commit([.saveAccount(1, .memory("a"))]) }
        try FileManager.default.moveItem(atPath: path.string + "-away", toPath: path.string)
        await #expect(throws: QueueError.self, "later commits fail, too, because the states in memory and on disk differ") {
            try await store.commit([.saveAccount(2, .memory("b"))])
        }
        await store.close()
    }
}
