import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

private let memoryDisk = "/dev/shm"

private let memoryDiskTakesHugeFiles: Bool = {
    let path = FilePath(memoryDisk).appending("transferkit-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    return (try? makeSparse(path, size: 7 << 60)) != nil
}()

private func makeSparse(_ path: FilePath, size: Int64) throws {
    let file = try FileDescriptor.open(path, .writeOnly, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
    defer { try? file.close() }
    try file.resize(to: size)
}

/// Sparse files, whose sizes are larger than any disk. Only some file systems, such as tmpfs, take them.
@Suite(.enabled(if: memoryDiskTakesHugeFiles)) struct SparseFileTests {
    @Test func aFolderOfHugeFilesFailsWithASentence() async throws {
        let fixture = try QueueFixture()
        let folder = FilePath(memoryDisk).appending("transferkit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        for name in ["a", "b"] { try makeSparse(folder.appending(name), size: 7 << 60) }
        for index in 0..<17 { try makeSparse(folder.appending("c\(index)"), size: 1 << 56) }
        let queue = try await fixture.openWithAccounts()
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 1))
        let session = try await queue.enqueue(try .upload([folder], to: "a", options: options), held: true)
        fixture.memory.failNext(100, with: TransferError(.permanent, .rejected, "It is not taken."))
        try await session.release()
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        let items = try await queue.items(of: session.id)
        #expect(items.count == 19)
        #expect(items.prefix(2).allSatisfy { $0.error?.code == .tooLarge })
        // The last of those with 64 PiB each is more than a session takes.
        #expect(items.filter { $0.error?.code == .tooLarge }.count == 3)
        #expect(try await session.status.statistics.bytesTotal == 1 << 60)
        await queue.shutdown()
    }
}
