import Foundation
import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// Two callers that check the same session's items at the same time, and then replace items.
@Suite struct ReplacingTests {
    private static func item(_ name: String) -> ItemDraft {
        ItemDraft(source: Data("/\(name)".utf8), destination: Data(name.utf8), size: 1)
    }

    private func names(_ store: QueueStore) async throws -> [String] {
        let names = try await store.pool.read { try Data.fetchAll($0, sql: "SELECT destination FROM file ORDER BY position") }
        return names.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Creates a database with a held session that has the items "a" and "b".
    private func preparedStore(in folder: TemporaryFolder) async throws -> QueueStore {
        let store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        var draft = SessionDraft.draft()
        draft.items = [Self.item("a"), Self.item("b")]
        try await store.commit([.saveAccount(1, .memory("a")), .session(1, rank: 0, draft, .held)])
        return store
    }

    /// The new item gets the position of the removed item, but the second caller checked only the removed item.
    @Test func keepsItemThatReplacedCheckedItem() async throws {
        let folder = try TemporaryFolder()
        let store = try await preparedStore(in: folder)
        let checked = try #require(try await store.replaceableItems(.at([1]), of: 1))
        try await store.commit([.replaceItems(1, .at([1]), checked, with: [Self.item("c")])])
        #expect(try await names(store) == ["a", "c"])
        let refusal = await #expect(throws: StoreRefusal.self) {
            try await store.commitIdentifyingFailure([.replaceItems(1, .at([1]), checked, with: [Self.item("d")])])
        }
        #expect(refusal?.error.code == .invalidTransition && refusal?.culprit?.index == 0)
        #expect(try await names(store) == ["a", "c"])
        await store.close()
    }

    @Test func keepsLastItem() async throws {
        let folder = try TemporaryFolder()
        let store = try await preparedStore(in: folder)
        let first = try #require(try await store.replaceableItems(.at([0]), of: 1))
        let second = try #require(try await store.replaceableItems(.at([1]), of: 1))
        try await store.commit([.replaceItems(1, .at([0]), first, with: [])])
        let error = await #expect(throws: QueueError.self) { try await store.commit([.replaceItems(1, .at([1]), second, with: [])]) }
        #expect(error?.code == .invalidTransition)
        #expect(try await names(store) == ["b"])
        await store.close()
    }

    /// A failed item keeps its generation, so a new item at the same position would have the same transfer ID.
    @Test func rejectsReplacingAllItemsAfterFailure() async throws {
        let folder = try TemporaryFolder()
        let store = try await preparedStore(in: folder)
        try await store.commit([.file(1, position: 0, .failed(.broken))])
        #expect(try await store.replaceableItems(.all, of: 1) == nil)
        await store.close()
    }
}
