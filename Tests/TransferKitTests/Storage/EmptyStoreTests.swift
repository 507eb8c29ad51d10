import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct EmptyStoreTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private var storage: FilePath { folder.path.appending("store") }
    private var database: String { storage.appending("queue.sqlite").string }

    private func open() async throws -> QueueStore {
        try await QueueStore.open(.folder(storage), clock: .system)
    }

    private func writeEmptyDatabase() throws {
        try FileManager.default.createDirectory(atPath: storage.string, withIntermediateDirectories: true)
        try Data().write(to: URL(fileURLWithPath: database))
    }

    private func expectDamage() async throws {
        for _ in 0..<2 {
            let error = try await #require(throws: QueueError.self) { _ = try await open() }
            #expect(error.code == .storageDamaged)
            #expect(try Data(contentsOf: URL(fileURLWithPath: database)).isEmpty, "the file is unchanged")
        }
    }

    @Test func reportsEmptyDatabaseAsDamaged() async throws {
        let store = try await open()
        try await store.commit([.saveAccount(1, .memory("a"))])
        await store.close()
        try writeEmptyDatabase()
        try await expectDamage()
    }

    @Test func reportsEmptyDatabaseWithWriteAheadLogAsDamaged() async throws {
        try writeEmptyDatabase()
        try Data(count: 4_152).write(to: URL(fileURLWithPath: database + "-wal"))
        try await expectDamage()
        #expect(try Data(contentsOf: URL(fileURLWithPath: database + "-wal")).count == 4_152)
    }

    @Test func reportsEmptyDatabaseWithSpoolAsDamaged() async throws {
        try writeEmptyDatabase()
        try FileManager.default.createDirectory(atPath: storage.appending("spool").string, withIntermediateDirectories: true)
        try Data(count: 1).write(to: URL(fileURLWithPath: storage.appending("spool").appending("1").string))
        try await expectDamage()
        #expect(FileManager.default.fileExists(atPath: storage.appending("spool").appending("1").string))
    }

    /// An earlier process was killed while it created the database.
    @Test func opensNewFolderWithEmptyDatabase() async throws {
        try writeEmptyDatabase()
        try Data("77\n12345\n".utf8).write(to: URL(fileURLWithPath: storage.appending("owner.lock").string))
        let store = try await open()
        try await store.commit([.saveAccount(1, .memory("a"))])
        await store.close()
        try writeEmptyDatabase()
        try await expectDamage()
    }

    /// The write-ahead log may contain the only remaining data of the queue. SQLite would delete the log, so the queue must not open the
    /// database.
    @Test func keepsWriteAheadLogWithoutDatabase() async throws {
        let store = try await open()
        try await store.commit([.saveAccount(1, .memory("a"))])
        await store.abandon()
        let log = try Data(contentsOf: URL(fileURLWithPath: database + "-wal"))
        #expect(!log.isEmpty)
        try FileManager.default.removeItem(atPath: database)
        for _ in 0..<2 {
            let error = try await #require(throws: QueueError.self) { _ = try await open() }
            #expect(error.code == .storageDamaged)
            #expect(try Data(contentsOf: URL(fileURLWithPath: database + "-wal")) == log)
            #expect(!FileManager.default.fileExists(atPath: database))
        }
    }

    /// The file `owner.lock`, which names the owner, shows that the folder contained a database.
    @Test func reportsMissingDatabaseAsDamaged() async throws {
        let store = try await open()
        try await store.commit([.saveAccount(1, .memory("a"))])
        await store.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: storage.string)
        for name in names where name.hasPrefix("queue.sqlite") {
            try FileManager.default.removeItem(atPath: storage.appending(name).string)
        }
        for _ in 0..<2 {
            let error = try await #require(throws: QueueError.self) { _ = try await open() }
            #expect(error.code == .storageDamaged && error.message.contains("missing"), "\(error)")
            #expect(error.message.contains("delete all files in \(storage), including owner.lock"), "\(error)")
            #expect(!FileManager.default.fileExists(atPath: database))
        }
    }

    @Test func createsDatabaseAfterContentWasDeleted() async throws {
        var store = try await open()
        try await store.commit([.saveAccount(1, .memory("a"))])
        await store.close()
        for name in try FileManager.default.contentsOfDirectory(atPath: storage.string) {
            try FileManager.default.removeItem(atPath: storage.appending(name).string)
        }
        store = try await open()
        #expect(try await store.load(.memory).0.sessions.isEmpty)
        await store.close()
    }
}
