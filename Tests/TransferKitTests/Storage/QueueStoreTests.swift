import Foundation
import GRDB
import Locking
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite struct QueueStoreTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(timeout: Duration = .zero) async throws -> QueueStore {
        try await QueueStore.open(.folder(folder.path.appending("store"), ownerTimeout: timeout), clock: .system)
    }

    private var database: FilePath { folder.path.appending("store").appending("queue.sqlite") }

    @Test func syncsDatabaseOnEachCommit() async throws {
        let store = try await open()
        let settings = try await store.pool.writeWithoutTransaction { db in
            (try String.fetchOne(db, sql: "PRAGMA journal_mode"), try Int.fetchOne(db, sql: "PRAGMA synchronous"))
        }
        #expect(settings.0 == "wal")
        #expect(settings.1 == 2, "2 is FULL")
        // The setting `synchronous` belongs to a connection, and must still apply after writes through the pool.
        try await store.commit([.saveAccount(1, .memory("a"))])
        #expect(try await store.pool.write { try Int.fetchOne($0, sql: "PRAGMA synchronous") } == 2)
        await store.close()
    }

    @Test func databaseInReadableFolderIsPrivate() async throws {
        let path = folder.path.appending("store").string
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        let store = try await open()
        try await store.commit([.saveAccount(1, .memory("a"))])
        for name in ["queue.sqlite", "queue.sqlite-wal"] {
            let mode = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(name)")
        }
        await store.close()
    }

    @Test func countsCheckpointsAtSeveralEndpointsOnce() async throws {
        let store = try await open()
        let identity = SourceIdentity(size: 100, modificationTime: 0, inode: 0, device: 0, bootID: "")
        func checkpoint(_ endpoint: String, _ confirmed: Int64) -> StoreWrite {
            .file(
                1, position: 0,
                .checkpoint(
                    Checkpoint(data: Data([1]), confirmed: confirmed, expiresAt: Date(timeIntervalSince1970: TimeInterval(confirmed))),
                    endpoint: Endpoint(transport: "memory", address: endpoint),
                    generation: 1,
                    identity))
        }
        try await store.commit([
            .saveAccount(1, .memory("a")), .session(1, rank: 0, .draft()), checkpoint("one", 60),
            checkpoint("two", 50),
        ])
        #expect(try await store.sessions([1]).first?.status.statistics.bytesDone == 60)
        #expect(try await store.pendingFiles(of: 1, after: -1, limit: 1).first?.confirmed == 60)
        #expect(try await store.items(of: 1, from: 0, limit: 1).first?.partialExpiresAt == Date(timeIntervalSince1970: 60))
        let checkpoints = try await store.page(of: 1, after: -1, limit: 1).checkpoints[0]
        #expect(checkpoints?["two"]?.checkpoint.expiresAt == Date(timeIntervalSince1970: 50))
        await store.close()
    }

    /// In a damaged table, two files can have the same position.
    @Test func rejectsFilesAtSamePosition() async throws {
        let store = try await open()
        try await store.commit([.saveAccount(1, .memory("a")), .session(1, rank: 0, .draft())])
        #expect(try await store.page(of: 1, after: -1, limit: 9).files.count == 1)
        try await store.pool.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    PRAGMA foreign_keys = OFF;
                    CREATE TABLE copy AS SELECT * FROM file;
                    INSERT INTO copy SELECT * FROM file;
                    DROP TABLE file;
                    ALTER TABLE copy RENAME TO file;
                    """)
        }
        await #expect(throws: (any Error).self) { try await store.page(of: 1, after: -1, limit: 9) }
        await store.close()
    }

    @Test func folderIsPrivate() async throws {
        let store = try await open()
        let mode = try FileManager.default.attributesOfItem(atPath: store.folder.string)[.posixPermissions] as? Int
        #expect(mode == 0o700)
        await store.close()
    }

    @Test func transactionIsAllOrNothing() async throws {
        let store = try await open()
        try await store.commit([.saveAccount(1, .memory("a"))])
        let error = try await #require(throws: QueueError.self) {
            try await store.commit([
                .session(1, rank: 0, .draft()),
                .session(1, rank: 1, .draft()),
            ])
        }
        #expect(error.code == .storageUnavailable)
        #expect(try await store.load(.memory).0.sessions.isEmpty)
        await store.close()
    }

    @Test func loadsStoredSessions() async throws {
        var store = try await open()
        let drafts = (0..<3).map { _ in SessionDraft.draft() }
        try await store.commit([
            .saveAccount(1, .memory("a")), .session(1, rank: 30, drafts[0]),
            .session(2, rank: 10, drafts[1], .running),
            .session(3, rank: 20, drafts[2], .failed), .beginSession(2, .now), .endSession(3, .broken, .now),
            .blockAccount(1, AccountBlock(error: .broken)),
        ])
        await store.close()
        store = try await open()
        let loaded = try await store.load(.memory).0
        #expect(loaded.accounts.values.map(\.account) == [.memory("a")])
        #expect(loaded.accounts[1]?.block?.error == .broken)
        #expect(loaded.sessions.map(\.id) == [drafts[1].id, drafts[2].id, drafts[0].id])
        #expect(loaded.sessions.map(\.state) == [.waiting, .failed, .waiting])
        #expect(
            loaded.sessions.compactMap { loaded.sessionIndex[$0.key]?.startPriority } == [.interrupted, .none, .none],
            "interrupted sessions start first"
        )
        #expect(try await store.sessions([2]).first?.status.state == .waiting, "the new state is stored")
        await store.close()
    }

    @Test func reportsOnlyInterruptedSessionsOnOpen() async throws {
        let store = try await open()
        let drafts = (0..<3).map { _ in SessionDraft.draft() }
        var earlier = Entry(id: drafts[2].id, key: 3, rank: 20, account: 1, state: .waiting)
        earlier.startPriority = .interrupted
        var sessions = NewSessions(drafts: [drafts[2]], createdAt: .now)
        sessions.append(earlier)
        try await store.commit([
            .saveAccount(1, .memory("a")), .session(1, rank: 30, drafts[0], .running), .session(2, rank: 10, drafts[1], .running),
            .insertSessions(sessions),
        ])
        #expect(try await store.load(.memory).events == [.changed([drafts[1].id, drafts[0].id], .waiting)])
        #expect(try await store.load(.memory).events == [])
        await store.close()
    }

    @Test func doesNotRemoveUploadDuringRunOfRemovedSession() async throws {
        let store = try await open()
        let account = Account.memory("a")
        let identity = SourceIdentity(size: 1, modificationTime: 0, inode: 0, device: 0, bootID: "")
        let checkpoint = Checkpoint(data: Data([1]), confirmed: 1)
        try await store.commit([
            .saveAccount(1, account), .session(1, rank: 0, .draft()),
            .file(1, position: 0, .checkpoint(checkpoint, endpoint: account.endpoints[0], generation: 1, identity)),
            .deleteSession(1, isRunning: true),
            .holdDiscard(1, position: 1, checkpoint, account.endpoints[0]),
        ])
        #expect(try await store.dueDiscards(at: .now, limit: 9).due.isEmpty)
        // The account may have been edited during the run.
        var endpoint = account.endpoints[0]
        endpoint.settings["edited"] = "yes"
        try await store.commit([.dropDiscard(1, position: 0, endpoint), .releaseDiscards(1)])
        #expect(
            try await store.dueDiscards(at: .now, limit: 9).due.count == 1, "only the unfinished upload is removed, not the completed file")
        await store.close()
    }

    @Test func removesSessionCompletely() async throws {
        let store = try await open()
        let identity = SourceIdentity(size: 1, modificationTime: 0, inode: 0, device: 0, bootID: "")
        try await store.commit([
            .saveAccount(1, .memory("a")), .session(1, rank: 0, .draft()),
            .file(
                1, position: 0,
                .checkpoint(
                    Checkpoint(data: Data([1]), confirmed: 1), endpoint: Endpoint(transport: "memory", address: "e"), generation: 1,
                    identity)),
        ])
        #expect(try await store.checkpoint(session: 1, position: 0, endpoint: "e", generation: 1)?.checkpoint.confirmed == 1)
        #expect(
            try await store.checkpoint(session: 1, position: 0, endpoint: "e", generation: 2) == nil,
            "the checkpoint belongs to another generation of the file")
        try await store.commit([.deleteSession(1)])
        let remaining = try await store.pool.read {
            try Int.fetchOne($0, sql: "SELECT (SELECT count(*) FROM file) + (SELECT count(*) FROM checkpoint)")
        }
        #expect(remaining == 0)
        await store.close()
    }

    @Test func rejectsNewerDatabaseWithoutChangingIt() async throws {
        try await open().close()
        try await DatabaseQueue(path: database.string).write { try $0.execute(sql: "PRAGMA user_version = 99") }
        let before = try Data(contentsOf: URL(fileURLWithPath: database.string))
        let error = try await #require(throws: QueueError.self) { try await open() }
        #expect(error.code == .storageTooNew)
        #expect(error.message.contains("99") && error.message.contains(database.string))
        #expect(try Data(contentsOf: URL(fileURLWithPath: database.string)) == before)
    }

    @Test func rejectsDatabaseOfPrereleaseVersion() async throws {
        try await open().close()
        try await DatabaseQueue(path: database.string).write { try $0.execute(sql: "PRAGMA user_version = 4") }
        let before = try Data(contentsOf: URL(fileURLWithPath: database.string))
        let error = try await #require(throws: QueueError.self) { try await open() }
        #expect(error.code == .storageUnavailable)
        #expect(error.message.hasSuffix("Finish its sessions with that version, or use another folder."))
        #expect(try Data(contentsOf: URL(fileURLWithPath: database.string)) == before)
    }

    @Test func opensDespiteFileWithoutSession() async throws {
        try await open().close()
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        try await DatabaseQueue(path: database.string, configuration: configuration).write {
            try $0.execute(
                sql: "INSERT INTO file(session, position, source, destination, state, size) VALUES (99, 0, x'61', x'61', 'pending', 1)")
        }
        try await open().close()
    }

    @Test(.oneProcessAtATime) func completesCreationAfterKill() async throws {
        let steps = Locked(0)
        try await QueueStore.open(.folder(folder.path.appending("counted")), clock: .system) { _ in steps.withLock { $0 += 1 } }.close()
        for step in 1...steps.withLock({ $0 }) {
            let path = folder.path.appending("\(step)")
            await #expect(processExitsWith: .signal(SIGKILL)) { [path = path.string as String, step = step as Int] in
                let steps = Locked(0)
                let store = try await QueueStore.open(.folder(FilePath(path)), clock: .system) { _ in
                    let count = steps.withLock { steps in
                        steps += 1
                        return steps
                    }
                    if count == step { kill(getpid(), SIGKILL) }
                }
                await store.close()
                kill(getpid(), SIGKILL)
            }
            let store = try await QueueStore.open(.folder(path), clock: .system)
            try await store.commit([.saveAccount(1, .memory("a"))])
            await store.close()
        }
    }

    @Test func rejectsNewerVersionInWriteAheadLog() async throws {
        try await open().close()
        // A process with a newer version was killed before SQLite moved the log into the database, so the database's header still shows
        // the old version.
        let newer = try DatabasePool(path: database.string)
        try await newer.write { try $0.execute(sql: "PRAGMA user_version = 99") }
        let error = try await #require(throws: QueueError.self) { try await open() }
        #expect(error.code == .storageTooNew)
        try newer.close()
    }

    @Test(arguments: [Data(repeating: 0x58, count: 8_192), Data(repeating: 0, count: 100), Data("SQLite format 3\0".utf8)])
    func reportsDamagedDatabase(_ content: Data) async throws {
        try await open().close()
        try content.write(to: URL(fileURLWithPath: database.string))
        #expect(try await #require(throws: QueueError.self) { try await open() }.code == .storageDamaged)
        #expect(try Data(contentsOf: URL(fileURLWithPath: database.string)) == content)
    }

    @Test func reportsDamageAfterHeader() async throws {
        try await open().close()
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: database.string))
        try handle.seek(toOffset: 100)
        try handle.write(contentsOf: Data(repeating: 0xA5, count: 3_000))
        try handle.close()
        #expect(try await #require(throws: QueueError.self) { try await open() }.code == .storageDamaged)
    }

    @Test func rejectsDatabaseOfAnotherProgram() async throws {
        try await open().close()
        try await DatabaseQueue(path: database.string).write { try $0.execute(sql: "PRAGMA application_id = 7") }
        #expect(try await #require(throws: QueueError.self) { try await open() }.code == .storageUnavailable)
    }

    /// With a name that is not UTF-8, SQLite would open the database of another folder, which may belong to another queue.
    @Test func rejectsFolderNameThatIsNotUTF8() async throws {
        let path = folder.path.appending(FilePath(bytes: [0x71, 0xFF]).components)
        let error = try await #require(throws: QueueError.self) { try await QueueStore.open(.folder(path), clock: .system) }
        #expect(error.code == .storageUnavailable && error.message.contains("UTF-8"))
    }

    @Test func errorNamesFolderThatCannotBeCreated() async throws {
        let file = try folder.file("plain", size: 1)
        let error = try await #require(throws: QueueError.self) {
            try await QueueStore.open(.folder(file.appending("store")), clock: .system)
        }
        #expect(error.code == .storageUnavailable)
        #expect(error.message.contains(file.string))
        let other = try await #require(throws: QueueError.self) { try await QueueStore.open(.folder(file), clock: .system) }
        #expect(other.code == .storageUnavailable && other.message.contains("it is a file"))
        let empty = try await #require(throws: QueueError.self) { try await QueueStore.open(.folder(FilePath()), clock: .system) }
        #expect(empty.code == .storageUnavailable && empty.message.contains("empty"))
    }

    @Test func folderHasOnlyOneOwner() async throws {
        let first = try await open()
        let error = try await #require(throws: QueueError.self) { try await open() }
        #expect(error.code == .storageInUse)
        #expect(error.message.contains("process \(ProcessInfo.processInfo.processIdentifier)"))
        let second = Task { try await open(timeout: .seconds(60)) }
        await first.close()
        try await second.value.close()
    }

    @Test(arguments: [true, false]) func timeoutAppliesToEachOwnerSeparately(releasesLock: Bool) async throws {
        let path = folder.path
        let owner = Locked(try await OwnerLock.acquire(in: path, timeout: .zero, clock: .system))
        let (time, sleeps) = (Locked(Duration.zero), Locked(0))
        let clock = EngineClock(
            now: { time.withLock { $0 } }, date: { .distantPast },
            sleep: { _ in
                time.withLock { $0 += .seconds(9) }
                let number = sleeps.withLock { count in
                    count += 1
                    return count
                }
                guard releasesLock else { return }
                owner.withLock { $0 }.release()
                guard number < 4 else { return }
                let next = try await OwnerLock.acquire(in: path, timeout: .zero, clock: .system)
                owner.withLock { $0 = next }
            })
        do {
            try await OwnerLock.acquire(in: path, timeout: .seconds(10), clock: clock).release()
            #expect(releasesLock && sleeps.withLock { $0 } == 4)
        } catch {
            #expect(!releasesLock && error.code == .storageInUse && sleeps.withLock { $0 } == 2)
        }
        owner.withLock { $0 }.release()
    }

    @Test(.oneProcessAtATime) func recoversLockAndCommitsOfDeadOwner() async throws {
        let path = folder.path.appending("store").string
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try await QueueStore.open(.folder(FilePath(path)), clock: .system)
            try await store.commit([
                .saveAccount(1, Account("a", endpoints: [Endpoint(transport: "memory", address: "memory://a/")])),
                .session(1, rank: 0, SessionDraft(id: SessionID(), account: "a", name: "kept"), .running),
            ])
            kill(getpid(), SIGKILL)
        }
        let store = try await open()
        let loaded = try await store.load(.memory).0
        #expect(loaded.sessions.compactMap { loaded.sessionIndex[$0.key]?.startPriority } == [.interrupted])
        await store.close()
    }
}
