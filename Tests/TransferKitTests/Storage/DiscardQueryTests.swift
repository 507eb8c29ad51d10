import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// What is to be removed is found at once, however much of it waits for a server that is away.
@Suite struct DiscardQueryTests {
    /// Few rows have a time at which they are left alone, and the index has no others.
    @Test func whoIsLeftAloneIsFoundByThat() async throws {
        let folder = try TemporaryFolder()
        let store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        let plan = try await store.pool.read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(DiscardQuery.leftAlone)", arguments: [5]).map { $0["detail"] as String }
        }
        #expect(plan.first == "SEARCH discard USING INDEX discard_left_alone (left_alone_until>?)", "\(plan)")
        await store.close()
    }

    private static let queries: [(sql: String, arguments: StatementArguments)] = [
        (DiscardQuery.hasDue, [5]),
        (DiscardQuery.due(isLocalOnly: false), [5, 9, nil]), (DiscardQuery.due(isLocalOnly: true), [5, 9, nil]),
        (DiscardQuery.next(isLocalOnly: false), [5]), (DiscardQuery.next(isLocalOnly: true), [5]),
        (DiscardQuery.later, [5, 6, 9]),
        (DiscardQuery.release, [5]),
    ]

    @Test(arguments: Self.queries.indices) func noneReadsAllThatThereIs(_ index: Int) async throws {
        let folder = try TemporaryFolder()
        let store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        let query = Self.queries[index]
        let plan = try await store.pool.read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(query.sql)", arguments: query.arguments).map { $0["detail"] as String }
        }
        #expect(plan.contains { $0.hasPrefix("SEARCH discard USING") }, "\(plan)")
        #expect(!plan.contains { $0.contains("SCAN discard") || $0.contains("TEMP B-TREE") }, "\(plan)")
        await store.close()
    }
}
