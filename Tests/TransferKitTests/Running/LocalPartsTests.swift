import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// How the parts of downloads are removed from this machine.
@Suite struct LocalPartsTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func parts(_ sync: @escaping @Sendable (FileDescriptor) -> CInt) -> LocalParts {
        LocalParts(sources: SourceFolders(base: nil, spool: folder.path), sync: sync)
    }

    private func isThere(_ name: String) -> Bool { FileManager.default.fileExists(atPath: folder.path.appending(name).string) }

    @Test func partsOfOneFolderShareItsSync() async throws {
        let syncs = Locked(0)
        let parts = parts { _ in
            syncs.withLock { $0 += 1 }
            return 0
        }
        let names = (0..<64).map { ".\($0).part" }
        for name in names.dropFirst() { _ = try folder.file(name, size: 1) }
        // One that is gone is removed.
        let failures = await parts.remove(names.map { parts.checkpoint(of: FilePath($0), below: folder.path) })
        #expect(failures.isEmpty && syncs.withLock { $0 } == 1)
        #expect(!names.contains(where: isThere))
        #expect(await parts.remove([parts.checkpoint(of: ".a.part", below: folder.path.appending("gone"))]).isEmpty)
    }

    /// A folder can't be removed as a file.
    @Test func aPartThatStaysHoldsUpNoOther() async throws {
        let parts = parts { _ in 0 }
        for name in [".a.part", ".c.part"] { _ = try folder.file(name, size: 1) }
        try FileManager.default.createDirectory(atPath: folder.path.appending(".b.part").string, withIntermediateDirectories: false)
        let failures = await parts.remove([".a.part", ".b.part", ".c.part"].map { parts.checkpoint(of: $0, below: folder.path) })
        #expect(Array(failures.keys) == [1] && failures[1]?.message.contains(".b.part") == true)
        #expect(!isThere(".a.part") && isThere(".b.part") && !isThere(".c.part"))
    }

    /// Their names may come back after a loss of power, so the store must not forget them.
    @Test func noPartCountsAsRemovedThatIsNotSynced() async throws {
        let parts = parts { _ in
            errno = EIO
            return -1
        }
        for name in [".a.part", ".b.part"] { _ = try folder.file(name, size: 1) }
        let failures = await parts.remove([".a.part", ".b.part"].map { parts.checkpoint(of: $0, below: folder.path) })
        #expect(failures.count == 2 && failures.values.allSatisfy { !$0.message.isEmpty })
    }
}
