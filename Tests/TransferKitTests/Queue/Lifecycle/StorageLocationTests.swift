import Foundation
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

@Suite struct StorageLocationTests {
    /// Opens a queue with storage in memory, and enqueues a session that sends three bytes.
    private static func open(_ memory: MemoryTransport = MemoryTransport()) async throws -> (TransferQueue, TransferSession) {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        let queue = try await TransferQueue(storage: .inMemory, transports: [memory], configuration: configuration)
        try await queue.save(Account("a", endpoints: [memory.endpoint()]))
        return (queue, try await queue.enqueue(.upload(items: [.data(Data([1, 2, 3]), as: RemotePath("x"))], to: "a")))
    }

    private func exists(_ folder: FilePath) -> Bool { FileManager.default.fileExists(atPath: folder.string) }

    @Test func storageInMemoryEndsWithShutdown() async throws {
        let memory = MemoryTransport()
        let (queue, session) = try await Self.open(memory)
        let folder = queue.store.folder
        #if os(Linux)
            let parents = [FilePath("/dev/shm"), Storage.variable("XDG_RUNTIME_DIR")].compactMap(\.self)
            #expect(parents.contains { folder.starts(with: $0) }, "\(folder) may be on a disk")
        #endif
        var attributes = stat()
        let result = unsafe lstat(folder.string, &attributes)
        #expect(result == 0 && attributes.st_mode & 0o777 == 0o700)
        try await queue.start()
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
        #expect(!exists(folder))
    }

    @Test func storageInMemoryEndsWithoutShutdown() async throws {
        var queue: TransferQueue? = try await Self.open().0
        let folder = try #require(queue?.store.folder)
        queue = nil
        while exists(folder) { await Task.yield() }
    }

    /// An opening queue removes abandoned folders, but must not remove a folder that another queue is creating.
    @Test func eachQueueHasItsOwnStorageInMemory() async throws {
        let folders = try await withThrowingTaskGroup(of: FilePath.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    let (queue, session) = try await Self.open()
                    try await queue.start()
                    #expect(try await session.value.state == .completed)
                    #expect(try await queue.sessions().count == 1)
                    await queue.shutdown()
                    return queue.store.folder
                }
            }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(folders.count == 20)
    }

    @Test(.oneProcessAtATime) func nextOpeningRemovesStorageInMemoryOfKilledProcess() async throws {
        let folder = try TemporaryFolder()
        let pathFile = folder.path.appending("record").string
        await #expect(processExitsWith: .signal(SIGKILL)) { [pathFile = pathFile as String] in
            let (queue, _) = try await Self.open()
            try Data(queue.store.folder.string.utf8).write(to: URL(fileURLWithPath: pathFile))
            kill(getpid(), SIGKILL)
        }
        let abandoned = FilePath(try String(contentsOfFile: pathFile, encoding: .utf8))
        let parent = abandoned.removingLastComponent()
        // A process that was killed before it created the lock file leaves an empty folder.
        let empty = parent.appending("transferkit-memory-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: empty.string, withIntermediateDirectories: false)
        // This folder is not a storage folder.
        let other = parent.appending("transferkit-memory-\(UUID().uuidString)-other")
        try FileManager.default.createDirectory(atPath: other.string, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: other.string) }
        let (queue, _) = try await Self.open()
        #expect(!exists(abandoned) && !exists(empty) && exists(other) && exists(queue.store.folder))
        await queue.shutdown()
    }

    /// With the usual minimum of 64 MiB of free space, a container with 64 MiB of shared memory could start no session.
    @Test func smallFileSystemNeedsLessFreeSpace() async throws {
        let folder = try TemporaryFolder()
        let disk = try SmallDisk(.mounted, in: folder.path, megabytes: 32)
        defer { withExtendedLifetime(disk) {} }
        guard disk.kind == .mounted else { return }
        let store = folder.path.appending("store")
        let minimum = DiskSpace.reserve(64 << 20, at: store)
        #expect(minimum == 2 << 20)
        #expect(DiskSpace.reserve(1 << 20, at: store) == 1 << 20)
    }

    @Test func folderOfApplicationContainsItsName() throws {
        let folder = try #require(Storage.application("com.example.uploader").folder)
        #expect(folder.isAbsolute && folder.components.contains("com.example.uploader"))
        #expect(Storage.application("com.example.uploader").folder == folder)
    }
}
