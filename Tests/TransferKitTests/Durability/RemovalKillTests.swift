import Foundation
import GRDB
import Locking
import Logging
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite(.oneProcessAtATime) struct RemovalKillTests {
    private static let count = 3 * QueueStore.maximumRowsPerSweep

    @Test(arguments: ["delete", "quarantine"]) func removesLargeSessionCompletelyOrNotAtAll(_ operation: String) async throws {
        let prepared = try TemporaryFolder()
        let store = try await Self.open(prepared.path)
        var draft = SessionDraft.draft()
        draft.items = (0..<Self.count).map { ItemDraft(source: Data("/f\($0)".utf8), destination: Data("\($0)".utf8), size: 1) }
        try await store.commit([.saveAccount(1, .memory("a")), .session(1, rank: 0, draft)])
        await store.close()
        let undisturbed = try Self.copy(prepared)
        let killPointCount = Locked(0)
        try await Self.remove(operation, undisturbed.path) { killPointCount.withLock { $0 += 1 } }
        let count = killPointCount.withLock { $0 }
        let samples = ProcessInfo.processInfo.environment["TRANSFERKIT_DURABILITY"] == "all" ? 200 : 4
        // Each row adds a kill point. All rows behave alike, so a sample is enough.
        let distance = max(1, count / samples)
        print("\(operation): testing about \(count / distance) of \(count) kill points")
        for killPoint in stride(from: Int.random(in: 1...distance), through: count, by: distance) {
            let folder = try Self.copy(prepared)
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [root = folder.path.string as String, operation = operation as String, killPoint = killPoint as Int] in
                let killPointCount = Locked(0)
                try await Self.remove(operation, FilePath(root)) {
                    let number = killPointCount.withLock { killPointCount in
                        killPointCount += 1
                        return killPointCount
                    }
                    if number == killPoint { kill(getpid(), SIGKILL) }
                }
                kill(getpid(), SIGKILL)
            }
            try await Self.check(operation, folder.path, "killed at kill point \(killPoint)")
        }
    }

    /// The kill comes after the first of several transactions, when only some of the dependents are released.
    @Test(arguments: ["remove", "withdraw"]) func nextProcessCompletesRemovalOfSessionWithManyDependents(_ operation: String) async throws {
        let fixture = try QueueFixture()
        let (first, dependents) = try await fixture.storeSessions(dependents: 25_000)
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [root = fixture.folder.path.string as String, operation = operation as String] in
            let hasRemoved = Locked(false)
            var configuration = QueueConfiguration()
            configuration.logger.logLevel = .critical
            configuration.storeObserver = { step in
                guard case .after(let sql) = step else { return }
                if sql.hasPrefix("DELETE FROM session ") { hasRemoved.withLock { $0 = true } }
                if sql.hasPrefix("COMMIT"), hasRemoved.withLock(\.self) { kill(getpid(), SIGKILL) }
            }
            let queue = try await TransferQueue(
                storage: .folder(FilePath(root).appending("store")), transports: [MemoryTransport(chunkSize: 1_000)],
                configuration: configuration)
            let first = await queue.sessionIDs()[0]
            if operation == "remove" { try await queue.remove(first, isForced: true) } else { try await queue.withdraw(first) }
        }
        let queue = try await fixture.open()
        let remainingIDs = await queue.sessionIDs()
        #expect(remainingIDs == dependents && !remainingIDs.contains(first))
        // The queue releases dependents in the order of their keys.
        while case .after? = try await queue.status(of: dependents[24_999]).why, remainingIDs == dependents { await Task.yield() }
        #expect(await queue.status().held == 0)
        #expect(try await queue.storeHealth().problems.isEmpty)
        await queue.shutdown()
        let reopened = try await fixture.open()
        #expect(try await reopened.sessions(in: .state(.waiting)).allSatisfy { $0.why == .queueNotRunning })
        await reopened.shutdown()
    }

    private static func open(_ root: FilePath, observer: (@Sendable (StoreStep) -> Void)? = nil) async throws -> QueueStore {
        try await QueueStore.open(.folder(root.appending("store")), clock: .system, observer: observer)
    }

    private static func copy(_ folder: TemporaryFolder) throws -> TemporaryFolder {
        let copy = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: folder.path.appending("store").string, toPath: copy.path.appending("store").string)
        return copy
    }

    private static func remove(_ operation: String, _ root: FilePath, _ reachKillPoint: @escaping @Sendable () -> Void) async throws {
        let store = try await open(root) { step in
            if case .before(let sql) = step, !sql.hasPrefix("SELECT"), !sql.hasPrefix("INSERT INTO quarantined_row") { reachKillPoint() }
        }
        try await store.commit([operation == "delete" ? .deleteSession(1) : .quarantine(1, "for a test")])
        while try await store.sweep() {}
        await store.close()
    }

    private static func check(_ operation: String, _ root: FilePath, _ comment: Comment) async throws {
        let store = try await open(root)
        let sessions = try await store.load(.memory).0.sessions.count
        let files = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM file") ?? 0 }
        if sessions == 1 {
            #expect(files == count, comment)
        } else {
            while try await store.sweep() {}
            let remaining = try await store.pool.read {
                try Int.fetchOne(
                    $0, sql: "SELECT (SELECT count(*) FROM file) + (SELECT count(*) FROM session) + (SELECT count(*) FROM removal)")
            }
            #expect(remaining == 0, comment)
            let kept = try await store.pool.read {
                try Int.fetchOne($0, sql: "SELECT count(*) FROM quarantined_row WHERE origin = 'file'")
            }
            #expect(kept == (operation == "delete" ? 0 : count), comment)
        }
        let problems = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM pragma_foreign_key_check") }
        #expect(problems == 0, comment)
        await store.close()
    }
}
