import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

private let memoryDisk = "/dev/shm"

private let memoryDiskSupportsHugeFiles: Bool = {
    let path = FilePath(memoryDisk).appending("transferkit-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    return (try? makeSparse(path, size: 7 << 60)) != nil
}()

private func makeSparse(_ path: FilePath, size: Int64) throws {
    let file = try FileDescriptor.open(path, .writeOnly, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
    defer { try? file.close() }
    try file.resize(to: size)
}

/// Sparse files that are larger than any disk. Only some file systems, such as tmpfs, support such files.
@Suite(.enabled(if: memoryDiskSupportsHugeFiles, "Requires a file system at /dev/shm that supports files of 7 EiB"))
struct SparseFileTests {
    /// Creates a folder with two files of 7 EiB and 17 files of 64 PiB.
    private static func folderOfHugeFiles() throws -> FilePath {
        let folder = FilePath(memoryDisk).appending("transferkit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
        for name in ["a", "b"] { try makeSparse(folder.appending(name), size: 7 << 60) }
        for index in 0..<17 { try makeSparse(folder.appending("c\(index)"), size: 1 << 56) }
        return folder
    }

    @Test func reportsFolderOfHugeFiles() async throws {
        let fixture = try QueueFixture()
        let folder = try Self.folderOfHugeFiles()
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        let queue = try await fixture.openWithAccounts()
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 1))
        let session = try await queue.enqueue(try .upload([folder], to: "a", options: options), held: true)
        fixture.memory.failNext(100, with: TransferError(.permanent, .rejected, "The server does not accept the file."))
        try await session.release()
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        let items = try await queue.items(of: session.id)
        #expect(items.count == 19)
        #expect(items.prefix(2).allSatisfy { $0.error?.code == .tooLarge })
        // With the last file of 64 PiB, the sum exceeds the limit of a session.
        #expect(items.filter { $0.error?.code == .tooLarge }.count == 3)
        #expect(try await session.status.statistics.bytesTotal == 1 << 60)
        await queue.shutdown()
    }

    @Test func rejectsHugeFiles() async throws {
        let fixture = try QueueFixture()
        let folder = try Self.folderOfHugeFiles()
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        let all = (0..<17).map { folder.appending("c\($0)") }
        let queue = try await fixture.openWithAccounts()
        for (paths, words) in [([folder.appending("a"), folder.appending("b")], "64 PiB"), (all, "1 EiB")] {
            let error = try await #require(throws: QueueError.self) { try await queue.enqueue(.upload(paths, to: "a")) }
            #expect(error.code == .unreadableItems && error.message.contains(words), "\(error.message)")
        }
        #expect(await queue.status().sessions == 0)
        await queue.shutdown()
    }
}
