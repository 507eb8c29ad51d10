import Foundation
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

/// Storage folders that can't be opened. Their files must stay unchanged, byte for byte, so that the user can repair them.
@Suite(.oneProcessAtATime) struct UntouchedStoreTests {
    private static let pageSize = 4_096
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func bytes(_ name: String, in root: FilePath) -> Data? {
        try? Data(contentsOf: URL(fileURLWithPath: root.appending("store").appending(name).string))
    }

    /// Damages one page at a time, and checks that a queue that can't open the database changes no file.
    ///
    /// - Returns: The number of damaged pages that kept the queue from opening the database.
    private func expectUntouched(_ root: FilePath) async throws -> Int {
        let content = try #require(bytes("queue.sqlite", in: root))
        let log = bytes("queue.sqlite-wal", in: root)
        var refusals = 0
        for page in 0..<content.count / Self.pageSize {
            var damaged = content
            // Keeps the first 100 bytes of each page. In the first page, these bytes are the file's header, which the queue checks first.
            for index in page * Self.pageSize + 100..<(page + 1) * Self.pageSize { damaged[index] = 0xA5 }
            let copy = try TemporaryFolder()
            try FileManager.default.createDirectory(atPath: copy.path.appending("store").string, withIntermediateDirectories: true)
            try damaged.write(to: URL(fileURLWithPath: copy.path.appending("store").appending("queue.sqlite").string))
            try log?.write(to: URL(fileURLWithPath: copy.path.appending("store").appending("queue.sqlite-wal").string))
            do {
                let stage = try await Stage(copy.path)
                await stage.queue.shutdown()
            } catch let error as QueueError {
                #expect(error.code == .storageDamaged, "page \(page)")
                refusals += 1
                #expect(bytes("queue.sqlite", in: copy.path) == damaged, "page \(page)")
                #expect(bytes("queue.sqlite-wal", in: copy.path) ?? Data() == log ?? Data(), "the log, page \(page)")
            }
        }
        return refusals
    }

    @Test func leavesDamagedDatabaseOfKilledOwnerUnchanged() async throws {
        let stage = try await Stage(folder.path)
        try await stage.queue.save(stage.account("a"))
        for number in 0..<200 { _ = try await stage.queue.enqueue(stage.upload("s\(number)", size: 1)) }
        await stage.queue.shutdown()
        await #expect(processExitsWith: .signal(SIGKILL)) { [root = folder.path.string as String] in
            let stage = try await Stage(FilePath(root))
            try await stage.queue.hold(Stage.id("s7"))
            kill(getpid(), SIGKILL)
        }
        #expect(try #require(bytes("queue.sqlite-wal", in: folder.path)).count > 0, "there is a log that must not change")
        #expect(try await expectUntouched(folder.path) > 2)
    }
}
