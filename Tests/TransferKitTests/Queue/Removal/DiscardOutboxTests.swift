import GRDB
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The outbox is the stored list of unfinished uploads that the queue must remove from servers.
@Suite(.timeLimit(.minutes(5))) struct DiscardOutboxTests {
    private let fixture: QueueFixture
    private let transport: StubbornTransport

    init() throws {
        fixture = try QueueFixture()
        transport = StubbornTransport(fixture.memory)
    }

    /// Starts one session for each name at a host. Cancels the sessions once each of them has a partial upload.
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

    /// Changes the database while the queue has the database open.
    private func changeDatabase<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
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

    /// The queue's statements name the dropped index, so SQLite rejects the statements until the test restores the index.
    @Test func retriesAfterOutboxCouldNotBeRead() async throws {
        let hung = transport.hang(at: "a", ignoresCancellation: false)
        let queue = try await fixture.open(transports: [transport])
        try await cancel(["1"], at: "a", in: queue)
        try await hung.wait()
        let index = try await changeDatabase { db in
            let sql = try String.fetchOne(db, sql: "SELECT sql FROM sqlite_master WHERE name = 'discard_due'")
            try db.execute(sql: "DROP INDEX discard_due")
            return sql
        }
        await queue.waitUntilIdle()
        let sql = try #require(index)
        try await changeDatabase { try $0.execute(sql: sql) }
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

    @Test func retryAtHangingHostDoesNotDelayNewRemovals() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later."))
        var queue = try await fixture.open(transports: [transport])
        try await cancel(["1"], at: "a", in: queue)
        await queue.waitUntilIdle()
        await queue.shutdown()

        let hung = transport.hang(at: "a", ignoresCancellation: false)
        queue = try await fixture.open(transports: [transport])
        try await queue.start()
        async let idle: Void = queue.waitUntilIdle()
        try await hung.wait()
        try await cancel(["2"], at: "b", in: queue)
        while fixture.memory.partialCount > 1 { await Task.yield() }
        #expect(fixture.memory.partialCount == 1)
        #expect(transport.requestCount == 3)
        transport.release()
        await idle
        #expect(try await queue.statistics().removalsDue == 0)
        await queue.shutdown()
    }

    /// The queue needs the dropped index to read the back-off times that earlier processes stored.
    @Test func backsOffAlthoughStoredBackOffsCannotBeRead() async throws {
        var queue = try await fixture.open(transports: [transport])
        await queue.shutdown()
        let index = try await changeDatabase { db in
            let sql = try String.fetchOne(db, sql: "SELECT sql FROM sqlite_master WHERE name = 'discard_left_alone'")
            try db.execute(sql: "DROP INDEX discard_left_alone")
            return sql
        }
        let sql = try #require(index)

        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(3_000)))
        queue = try await fixture.open(transports: [transport])
        try await cancel(["1", "2", "3"], at: "a", in: queue)
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 1)
        try await changeDatabase { try $0.execute(sql: sql) }
        try await cancel(["4"], at: "a", in: queue)
        await queue.waitUntilIdle()
        #expect(transport.requestCount == 1)
        #expect(try await queue.statistics().removalsDue == 4)
        await queue.shutdown()
    }

    /// One statement drops all expired removals, and a second statement postpones the rest.
    @Test func postponesRemovalsAtBackedOffHostTogether() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: .seconds(3_000)))
        var queue = try await fixture.open(transports: [transport])
        try await cancel(["1"], at: "a", in: queue)
        await queue.waitUntilIdle()
        await queue.shutdown()
        try await changeDatabase { db in
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
        #expect(transport.requestCount == 2, "one request from each process")
        #expect(try await queue.statistics().removalsDue == 4_901)
        // The first statement stores the response to the only request.
        let changes = statements.withLock(\.self)
        #expect(changes.count == 3, "\(changes)")
        #expect(changes.dropFirst().first?.hasPrefix("DELETE") == true, "expired removals are dropped before the others are postponed")
        await queue.shutdown()
    }
}

extension DiscardOutboxTests {
    private static let year = 365.0 * 24 * 3_600
    private static let week = Duration.seconds(7 * 24 * 3_600)

    /// A machine whose clock has no battery boots in 1970, and gets the correct date after a restart of the queue.
    @Test(arguments: [nil, Duration.seconds(3_000)])
    func wrongDateOfEarlierProcessKeepsRemovals(retryAfter: Duration?) async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later.", retryAfter: retryAfter))
        var queue = try await fixture.open(transports: [transport])
        try await cancel(["1", "2"], at: "a", in: queue)
        await queue.waitUntilIdle()
        await queue.shutdown()

        fixture.clock.setDate(by: 50 * Self.year)
        queue = try await fixture.open(transports: [transport])
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 2)
        fixture.clock.advance(by: Self.week - .seconds(3_600))
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 2)
        fixture.clock.advance(by: .seconds(7_200))
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 0)
        await queue.shutdown()
    }

    @Test func removalsExpireWeekAfterCorrectionOfDate() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later."))
        let queue = try await fixture.open(transports: [transport])
        try await cancel(["1"], at: "a", in: queue)
        await queue.waitUntilIdle()
        fixture.clock.setDate(by: 50 * Self.year)
        fixture.clock.advance(by: Self.week + .seconds(3_600))
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 1)
        fixture.clock.advance(by: Self.week + .seconds(3_600))
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 0)
        await queue.shutdown()
    }

    /// An earlier process stored the removal while the date was far in the future.
    @Test func correctsDeadlineFarInFuture() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later."))
        var queue = try await fixture.open(transports: [transport])
        try await cancel(["1"], at: "a", in: queue)
        await queue.waitUntilIdle()
        await queue.shutdown()
        try await changeDatabase { try $0.execute(sql: "UPDATE discard SET give_up_at = 9000000000000") }

        queue = try await fixture.open(transports: [transport])
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 1)
        fixture.clock.advance(by: Self.week + .seconds(3_600))
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 0)
        await queue.shutdown()
    }

    @Test func retriesPostponedRemovalAfterClockIsSetBack() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later."))
        let queue = try await fixture.open(transports: [transport])
        fixture.clock.setDate(by: 14 * Self.year)
        try await cancel(["1"], at: "a", in: queue)
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 1)
        fixture.clock.setDate(by: -14 * Self.year)
        transport.acceptRequests()
        await queue.waitUntilIdle()
        #expect(try await queue.statistics().removalsDue == 0)
        #expect(fixture.memory.partialCount == 0)
        await queue.shutdown()
    }

    @Test func sleepsNoLongerThanLongestDelayAfterClockIsSetBack() async throws {
        transport.refuse(at: "a", TransferError(.transient, .serverError, "Later."))
        let queue = try await fixture.open(transports: [transport])
        fixture.clock.setDate(by: 14 * Self.year)
        try await cancel(["1"], at: "a", in: queue)
        await queue.waitUntilIdle()
        let hung = transport.hang(at: "b", ignoresCancellation: false)
        try await cancel(["2"], at: "b", in: queue)
        try await hung.wait()
        fixture.clock.setDate(by: -14 * Self.year)
        transport.release()
        await queue.waitUntilContentRemoved()
        // Advances the time repeatedly, because the queue may begin to sleep just after the time advanced. In total, the time advances by
        // less than 14 years.
        for _ in 0..<1_000 where fixture.memory.partialCount > 1 {
            fixture.clock.advance(by: .seconds(25 * 3_600))
            await queue.waitUntilContentRemoved()
        }
        #expect(fixture.memory.partialCount == 1, "the transport did not remove the content at the host that hung")
        await queue.shutdown()
    }
}
