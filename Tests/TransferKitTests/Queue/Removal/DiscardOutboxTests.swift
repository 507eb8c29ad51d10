import GRDB
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The task that processes the discard outbox: the stored list of unfinished uploads that the queue must remove from servers. The tests
/// cover a failing store, wrong dates, and callers that wait for the task.
@Suite(.timeLimit(.minutes(5))) struct DiscardOutboxTests {
    private let fixture: QueueFixture
    private let transport: StubbornTransport

    init() throws {
        fixture = try QueueFixture()
        transport = StubbornTransport(fixture.memory)
    }

    /// Starts sessions at a host. Cancels them once each has a partial upload.
    private func cancel(_ names: [String], at host: String, in queue: TransferQueue) async throws {
        try await queue.setMaxConcurrentSessions(names.count)
        try await queue.save(Account(host, endpoints: [fixture.memory.endpoint(host: host)]))
        let gates = names.map { fixture.memory.gate($0, atByte: 4_000) }
        var sessions: [SessionID] = []
        for name in names { sessions.append(try await queue.enqueue(try fixture.upload(name, to: host)).id) }
        try await queue.start()
        for gate in gates { try await gate.reached() }
        try await queue.apply(.cancel(discarding: true), to: .sessions(sessions))
    }

    /// Changes the store while the queue has it open.
    private func changeStore<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        var configuration = Configuration()
        configuration.busyMode = .timeout(60)
        let path = fixture.folder.path.appending("store").appending("queue.sqlite").string
        return try await DatabaseQueue(path: path, configuration: configuration).write(body)
    }

    @Test func triesRemovalsOfEarlierProcessWhileNewRemovalsHang() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later."))
        var queue = try await fixture.open(transports: [transport])
        try await cancel(["1"], at: "a", in: queue)
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 1)
        await queue.shutdown()

        let hung = transport.hang(at: "b", ignoresCancellation: false)
        queue = try await fixture.open(transports: [transport])
        try await cancel(["2"], at: "b", in: queue)
        try await hung.wait()
        async let idle: Void = queue.waitUntilIdle()
        await fixture.clock.waitForSleep(of: .seconds(30))
        transport.release()
        await idle
        #expect(transport.requestCount == 3)
        #expect(try await queue.statistics().removalsDue == 0)
        await queue.shutdown()
    }

    /// The test drops the index of the outbox. The queue's statements name this index, so SQLite rejects them until the test restores the
    /// index.
    @Test func retriesAfterOutboxCouldNotBeRead() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: false)
        let queue = try await fixture.open(transports: [transport])
        try await cancel(["1"], at: "a", in: queue)
        try await hung.wait()
        let index = try await changeStore { db in
            let sql = try String.fetchOne(db, sql: "SELECT sql FROM sqlite_master WHERE name = 'discard_due'")
            try db.execute(sql: "DROP INDEX discard_due")
            return sql
        }
        await queue.waitUntilIdle()
        let sql = try #require(index)
        try await changeStore { try $0.execute(sql: sql) }
        transport.acceptRequests()
        await fixture.clock.waitForSleep(of: .seconds(10))
        fixture.clock.advance(by: .seconds(10))
        while fixture.memory.partialCount > 0 { await Task.yield() }
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 0)
        await queue.shutdown()
    }

    /// The machine boots with a date ten years in the future, and later gets the correct date.
    @Test(arguments: [nil, Duration.seconds(3_000)])
    func wrongDateAtOpeningKeepsRemovals(retryAfter: Duration?) async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: retryAfter))
        fixture.clock.setDate(by: 10 * 365 * 24 * 3_600)
        let queue = try await fixture.open(transports: [transport])
        fixture.clock.setDate(by: -10 * 365 * 24 * 3_600)
        try await cancel(["1", "2"], at: "a", in: queue)
        await queue.waitUntilIdle()
        #expect(transport.requestCount == (retryAfter == nil ? 2 : 1))
        #expect(try await queue.statistics().removalsDue == 2)
        await queue.shutdown()
    }

    /// A host with thousands of due removals asks the queue to back off. One statement then drops all expired removals, and another one
    /// postpones the rest.
    @Test func postponesRemovalsOfPausedHostTogether() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(3_000)))
        var queue = try await fixture.open(transports: [transport])
        try await cancel(["1"], at: "a", in: queue)
        await queue.waitUntilIdle()
        await queue.shutdown()
        try await changeStore { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 5000)
                    INSERT INTO discard(endpoint, data, confirmed, next_attempt_at, give_up_at, position)
                        SELECT endpoint, data, confirmed, 0, CASE WHEN n > 100 THEN give_up_at ELSE 1 END, 0 FROM discard, number;
                    UPDATE discard SET next_attempt_at = 0, left_alone_until = 0;
                    """)
        }
        let statements = Locked<[String]>([])
        queue = try await fixture.open(
            transports: [transport],
            storeObserver: { step in
                guard case .after(let statement) = step, statement.contains("discard SET") || statement.contains("DELETE FROM discard")
                else { return }
                statements.withLock { $0.append(String(statement.prefix(30))) }
            })
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 2, "one request of each process")
        #expect(try await queue.statistics().removalsDue == 4_901)
        // The first statement records the response to the only request.
        let changes = statements.withLock(\.self)
        #expect(changes.count == 3, "\(changes)")
        #expect(changes.dropFirst().first?.hasPrefix("DELETE") == true, "expired removals are dropped before the rest is postponed")
        await queue.shutdown()
    }
}
