import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Blocking calls must delay neither the cooperative pool nor other blocking calls.
@Suite(.serialized) struct BlockingIOTests {
    /// If these calls ran on the cooperative pool, they could block all its threads until Dispatch added more, about a second later.
    @Test(arguments: [4, 64]) func blockedCallsDoNotOccupyCooperativePool(_ count: Int) async {
        let gate = ThreadGate()
        let blocked = Task {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<count { group.addTask { await BlockingIO.run(.files) { gate.block() } } }
            }
        }
        await gate.waitForBlockedThreads(count)
        let clock = ContinuousClock()
        let start = clock.now
        for _ in 0..<1_000 { await Task.detached {}.value }
        print("A task took \((clock.now - start) / 1_000) to begin while \(count) calls were blocked.")
        gate.open(count)
        await blocked.value
        #expect(await BlockingIO.run { 7 } == 7)
    }

    @Test(arguments: BlockingIO.Pool.allCases) func hangingPoolDoesNotAffectOtherPools(_ pool: BlockingIO.Pool) async {
        let gate = ThreadGate()
        let blocked = Task {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<pool.limit { group.addTask { await BlockingIO.run(pool) { gate.block() } } }
            }
        }
        await gate.waitForBlockedThreads(pool.limit)
        for other in BlockingIO.Pool.allCases where other != pool { #expect(await BlockingIO.run(other) { 7 } == 7) }
        gate.open(pool.limit)
        await blocked.value
    }

    /// The stream's spool file is in the storage folder, and calls for this folder use another ``BlockingIO/Pool`` than calls for local files.
    @Test func shutsDownQueueWithStreamWhileFilesHang() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let (chunks, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        _ = try await queue.enqueue(.upload(items: [.stream(chunks, as: try RemotePath("stream"))], to: "a"))
        let gate = ThreadGate()
        let blocked = Task {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<64 { group.addTask { await BlockingIO.run(.files) { gate.block() } } }
            }
        }
        await gate.waitForBlockedThreads(64)
        await queue.shutdown()
        gate.open(64)
        await blocked.value
        continuation.finish()
    }

    private static let sharedPools = BlockingIO.Pool.allCases.filter { $0.reserve > 0 }

    @Test(arguments: sharedPools) func hangingOwnerDoesNotAffectOtherOwners(_ pool: BlockingIO.Pool) async {
        let gate = ThreadGate()
        let blocked = Task {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<200 { group.addTask { await BlockingIO.run(pool, for: .folder("/hung")) { gate.block() } } }
            }
        }
        await gate.waitForBlockedThreads(pool.ownerLimit)
        for folder in 0..<100 { #expect(await BlockingIO.run(pool, for: .folder(FilePath("/\(folder)"))) { folder } == folder) }
        #expect(await BlockingIO.run(pool) { 7 } == 7)
        gate.open(200)
        await blocked.value
        #expect(await BlockingIO.run(pool, for: .folder("/hung")) { 7 } == 7)
    }

    /// Hanging calls of many owners use all threads of the pool except its reserve threads. Every other owner still gets a reserve thread.
    @Test(arguments: sharedPools) func eachOwnerGetsThreadWhilePoolHangs(_ pool: BlockingIO.Pool) async {
        let gate = ThreadGate()
        let blocked = Task {
            await withTaskGroup(of: Void.self) { group in
                for owner in 0..<pool.limit / pool.ownerLimit {
                    for _ in 0..<2 * pool.ownerLimit {
                        group.addTask { await BlockingIO.run(pool, for: .folder(FilePath("/hung/\(owner)"))) { gate.block() } }
                    }
                }
            }
        }
        await gate.waitForBlockedThreads(pool.limit)
        let results = await withTaskGroup(of: Int.self) { group in
            for index in 0..<300 { group.addTask { await BlockingIO.run(pool, for: .folder(FilePath("/\(index % 30)"))) { index } } }
            return await group.reduce(0, +)
        }
        #expect(results == (0..<300).reduce(0, +))
        gate.open(2 * pool.limit)
        await blocked.value
    }

    /// The number of reserve threads is limited, so the total number of threads is limited, too.
    @Test(arguments: sharedPools) func limitsThreadsOfAllOwners(_ pool: BlockingIO.Pool) async {
        let gate = ThreadGate()
        let started = Locked(0)
        let count = pool.limit + 2 * pool.reserve
        let calls = Task {
            await withTaskGroup(of: Void.self) { group in
                for owner in 0..<count {
                    group.addTask {
                        await BlockingIO.run(pool, for: .folder(FilePath("/\(owner)"))) {
                            started.withLock { $0 += 1 }
                            gate.block()
                        }
                    }
                }
            }
        }
        await gate.waitForBlockedThreads(pool.limit + pool.reserve)
        #expect(started.withLock { $0 } == pool.limit + pool.reserve)
        gate.open(count)
        await calls.value
        #expect(started.withLock { $0 } == count)
    }

    @Test func callsBeyondLimitWaitForThread() async {
        let gate = ThreadGate()
        let done = Locked(0)
        let calls = Task {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<200 {
                    group.addTask {
                        await BlockingIO.run(.files) { gate.block() }
                        done.withLock { $0 += 1 }
                    }
                }
            }
        }
        await gate.waitForBlockedThreads(64)
        #expect(done.withLock { $0 } == 0)
        gate.open(200)
        await calls.value
        #expect(done.withLock { $0 } == 200)
    }

    @Test(arguments: [
        (1, ""), (2, " Another file of the session is also waiting."), (3, " 2 other files of the session are also waiting."),
    ])
    func longReadWarningCountsOtherFiles(count: Int, others: String) {
        let warning = LocalReads.warning(about: "/in/a", count: count)
        #expect(warning.hasPrefix("Reading /in/a has taken more than 30"))
        #expect(warning.hasSuffix("Its disk or network share may not be responding.\(others)"))
    }

    @Test func hangingFilesDoNotAffectOtherSessions() async throws {
        let fixture = try QueueFixture()
        let gate = ThreadGate()
        let isHung = Locked(true)
        let log = CountingLog(warnings: Locked(0))
        let queue = try await fixture.open(
            logger: Logger(label: "test") { _ in log },
            localReadObserver: { path in
                if path.string.contains("hung"), isHung.withLock({ $0 }) { gate.block() }
            })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let sessionCount = BlockingIO.Pool.files.limit / BlockingIO.Pool.files.ownerLimit + 1
        try await queue.setMaxConcurrentSessions(sessionCount + 1)
        var hung: [TransferSession] = []
        for index in 0..<sessionCount {
            let files = try (0..<16).map { try fixture.folder.file("hung-\(index)-\($0)", size: 10) }
            hung.append(try await queue.enqueue(.upload(files, to: "a", options: SessionOptions(filesInFlight: 16))))
        }
        try await queue.start()
        await gate.waitForBlockedThreads(sessionCount)

        let other = try await queue.enqueue(try fixture.upload("1", "2"))
        #expect(try await other.value.state == .completed)

        #expect(!log.messages.withLock { $0 }.contains { $0.text.contains("may not be responding") })
        fixture.clock.advance(by: .seconds(30))
        var warnings: [String] = []
        while warnings.count < sessionCount {
            // Wakes monitors that began to sleep after the first advance.
            fixture.clock.advance(by: .milliseconds(100))
            await Task.yield()
            warnings = log.messages.withLock { $0 }.map(\.text).filter { $0.contains("may not be responding") }
        }
        #expect(warnings.allSatisfy { $0.contains("hung-") }, "\(warnings)")
        let why = try await hung[0].status.why
        let text = if case .diskNotResponding(let text)? = why { text } else { String(describing: why) }
        #expect(text.contains("Reading") && text.contains("hung-0-"), "\(text)")

        isHung.withLock { $0 = false }
        gate.open(sessionCount * 16)
        for session in hung { #expect(try await session.value.state == .completed) }
        await queue.shutdown()
    }
}
