import GRDB
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// The queries must be fast even if many other removals wait for an unavailable server.
@Suite struct DiscardQueryTests {
    /// The index contains only removals whose server requested a delay, so the index is small.
    @Test func findsBackOffEndpointsWithIndex() async throws {
        let folder = try TemporaryFolder()
        let store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        let plan = try await store.pool.read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(DiscardQuery.backOffEndpoints)", arguments: [5]).map { $0["detail"] as String }
        }
        #expect(plan.first == "SEARCH discard USING INDEX discard_left_alone (left_alone_until>?)", "\(plan)")
        await store.close()
    }

    /// All stored removals were postponed while the machine's date was far in the future.
    @Test func correctsDatesFarInFutureInBatches() async throws {
        let folder = try TemporaryFolder()
        let store = try await QueueStore.open(.folder(folder.path.appending("store")), clock: .system)
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 20001)
                    INSERT INTO discard(endpoint, data, confirmed, next_attempt_at, give_up_at, position)
                        SELECT '{}', x'00', 0, 9000000000000, 9000000000000, 0 FROM number
                    """)
        }
        let countFarInFuture = { (column: String) in
            try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM discard WHERE \(column) > 8000000000000") }
        }
        try await store.commit([.correctImplausiblyLateDiscards])
        for column in ["next_attempt_at", "give_up_at"] { #expect(try await countFarInFuture(column) == 10_001, "\(column)") }
        _ = try await store.load(.memory)
        for column in ["next_attempt_at", "give_up_at"] { #expect(try await countFarInFuture(column) == 0, "\(column)") }
        await store.close()
    }

    private static let queries: [(sql: String, arguments: StatementArguments)] = [
        (DiscardQuery.hasDue, [5]),
        (DiscardQuery.due(isLocalOnly: false), [5, 9, nil]), (DiscardQuery.due(isLocalOnly: true), [5, 9, nil]),
        (DiscardQuery.next(isLocalOnly: false), [5]), (DiscardQuery.next(isLocalOnly: true), [5]),
        (DiscardQuery.later, [5, 6, 9]),
        (DiscardQuery.release, [5]),
    ]

    @Test(arguments: Self.queries.indices) func noQueryReadsWholeTable(_ index: Int) async throws {
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
