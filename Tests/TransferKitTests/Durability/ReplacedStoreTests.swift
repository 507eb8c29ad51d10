import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// Storage folders that are deleted or replaced while a queue has them open.
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
        let again = try await fixture.open()
        #expect(await again.sessionIDs().count == 2)
        await again.shutdown()
    }

    /// The folder disappears after the store has checked it, but before the commit. So the store must report that the commit failed.
    @Test func rejectsCommitToLostFile() async throws {
        let path = fixture.folder.path.appending("store")
        let store = try await QueueStore.open(.folder(path), clock: .system) { step in
            guard case .before(let sql) = step, sql.contains("INSERT INTO account") else { return }
            try? FileManager.default.moveItem(atPath: path.string, toPath: path.string + "-away")
        }
        await #expect(throws: QueueError.self) { try await store.commit([.saveAccount(1, .memory("a"))]) }
        try FileManager.default.moveItem(atPath: path.string + "-away", toPath: path.string)
        await #expect(throws: QueueError.self, "the state in memory differs from the stored state") {
            try await store.commit([.saveAccount(2, .memory("b"))])
        }
        await store.close()
    }
}
