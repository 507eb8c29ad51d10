import Foundation
import GRDB
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

@Suite(.oneProcessAtATime) struct OwnershipTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test func onlyOneProcessOpensFolder() async throws {
        let path = folder.path.appending("store")
        // The owner keeps the folder open until the other two child processes have failed to open it.
        await withTaskGroup { group in
            for number in 0..<3 {
                group.addTask { [root = folder.path] in
                    await #expect(processExitsWith: .success) { [root = root.string as String, number = number as Int] in
                        try await Self.race(number, in: FilePath(root))
                    }
                }
            }
        }
        let outcomes = try ["0", "1", "2"].map { try String(contentsOfFile: folder.path.appending($0).string, encoding: .utf8) }
        let winners = outcomes.filter { $0.hasPrefix("owner ") }
        #expect(winners.count == 1)
        let owner = try #require(winners.first).dropFirst("owner ".count)
        #expect(outcomes.filter { $0.contains("in use by process \(owner).") }.count == 2)
        let store = try await QueueStore.open(.folder(path), clock: .system)
        await store.close()
    }

    private static func race(_ number: Int, in root: FilePath) async throws {
        let outcome = root.appending("\(number)")
        do {
            let store = try await QueueStore.open(.folder(root.appending("store")), clock: .system)
            try Data("owner \(getpid())".utf8).write(to: URL(fileURLWithPath: outcome.string))
            let others = (0..<3).filter { $0 != number }.map { root.appending("\($0)").string }
            while !others.allSatisfy({ FileManager.default.fileExists(atPath: $0) }) { await Task.yield() }
            await store.close()
        } catch let error as QueueError where error.code == .storageInUse {
            try Data(error.message.utf8).write(to: URL(fileURLWithPath: outcome.string))
        }
    }

    @Test(arguments: [120, 200, 480]) func acceptsLongPath(_ length: Int) async throws {
        var path = folder.path
        while path.string.utf8.count < length { path.append(String(repeating: "d", count: min(60, length - path.string.utf8.count))) }
        #expect(path.string.utf8.count >= length)
        var store = try await QueueStore.open(.folder(path), clock: .system)
        try await store.commit([.saveAccount(1, .memory("a"))])
        await store.close()
        store = try await QueueStore.open(.folder(path), clock: .system)
        #expect(try await store.load(.memory).0.accounts.count == 1)
        await store.close()
    }

    /// The first path has a component that is too long for any file system. The second path is too long for SQLite (512 bytes;
    /// sqlite.org/src, os_unix.c, MAX_PATHNAME).
    @Test(arguments: [[300], Array(repeating: 60, count: 12)]) func rejectsTooLongPath(_ lengths: [Int]) async throws {
        var path = folder.path
        for length in lengths { path.append(String(repeating: "d", count: length)) }
        let error = try await #require(throws: QueueError.self) { try await QueueStore.open(.folder(path), clock: .system) }
        #expect(error.code == .storageUnavailable)
        #expect(error.message.contains(path.string))
    }

    @Test func rejectsReadOnlyFolder() async throws {
        let path = folder.path.appending("store")
        try await QueueStore.open(.folder(path), clock: .system).close()
        try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: path.string)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path.string)
        await #expect(processExitsWith: .success) { [path = path.string as String] in
            // Root can write even to a read-only folder, so the child process becomes an unprivileged user.
            if getuid() == 0, setuid(65_534) != 0 { return }
            let error = await #expect(throws: QueueError.self) { try await QueueStore.open(.folder(FilePath(path)), clock: .system) }
            #expect(error?.code == .storageUnavailable)
            #expect(error?.message.contains(path) == true)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path.string)
    }

    @Test func leavesNewerDatabaseUnchanged() async throws {
        let path = folder.path.appending("store")
        try await QueueStore.open(.folder(path), clock: .system).close()
        try await DatabaseQueue(path: path.appending("queue.sqlite").string).write { try $0.execute(sql: "PRAGMA user_version = 99") }
        let before = try contents(of: path)
        #expect(
            try await #require(throws: QueueError.self) { try await QueueStore.open(.folder(path), clock: .system) }.code == .storageTooNew)
        #expect(try contents(of: path) == before)
    }

    /// Returns the contents of all files except the lock file, which names its last owner.
    private func contents(of path: FilePath) throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: path.string) where name != "owner.lock" {
            contents[name] = try Data(contentsOf: URL(fileURLWithPath: path.appending(name).string))
        }
        return contents
    }
}
