import Dispatch
import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct LocalPartFilesTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func partFiles(_ sync: @escaping @Sendable (FileDescriptor) -> CInt) -> LocalPartFiles {
        LocalPartFiles(sources: SourceFolders(base: nil, spool: folder.path), sync: sync)
    }

    private func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: folder.path.appending(name).string) }

    @Test func partFilesInOneFolderShareSync() async throws {
        let syncs = Locked(0)
        let partFiles = partFiles { _ in
            syncs.withLock { $0 += 1 }
            return 0
        }
        let names = (0..<64).map { ".\($0).part" }
        for name in names.dropFirst() { _ = try folder.file(name, size: 1) }
        // A missing part file counts as removed.
        let failures = await partFiles.remove(names.map { partFiles.checkpoint(of: FilePath($0), below: folder.path) })
        #expect(failures.isEmpty && syncs.withLock { $0 } == 1)
        #expect(!names.contains(where: exists))
        #expect(await partFiles.remove([partFiles.checkpoint(of: ".a.part", below: folder.path.appending("gone"))]).isEmpty)
    }

    /// On a file system without hard links, the process was killed after it reserved the final name with an empty file. A note next to the part file
    /// describes the reservation.
    @Test(arguments: [(true, 11, 0), (false, 11, 0), (true, 12, 0), (true, 11, 1)])
    func removesReservedFinalNameOnlyIfNoteMatches(_ reservesName: Bool, _ notedSize: Int64, _ finalSize: Int) async throws {
        let partFiles = partFiles { _ in 0 }
        _ = try folder.file(".file.part", size: 11)
        _ = try folder.file("file", size: finalSize)
        let note = FinalNameNote(identity: [1, 2], size: notedSize, modificationTime: 0, reservesName: reservesName, name: "file")
        try Data(note.bytes).write(to: URL(fileURLWithPath: folder.path.appending(".file.part.new").string))
        #expect(await partFiles.remove([partFiles.checkpoint(of: ".file.part", below: folder.path)]).isEmpty)
        #expect(!exists(".file.part") && !exists(".file.part.new"))
        // A file that the note does not describe stays.
        #expect(exists("file") == !(reservesName && notedSize == 11 && finalSize == 0))
    }

    private func links(_ old: String, _ new: String) -> Bool {
        unsafe link(folder.path.appending(old).string, folder.path.appending(new).string) == 0
    }

    private func renames(_ old: String, _ new: String) -> Bool {
        unsafe rename(folder.path.appending(old).string, folder.path.appending(new).string) == 0
    }

    /// A queue is suspended just before it gives its part file the final name. The part file may already have a second, temporary name. Another queue
    /// then takes over (seizes) the part file.
    @Test(arguments: [false, true]) func seizedPartFileGetsNoFinalName(hasTemporaryName: Bool) async throws {
        let partFiles = partFiles { _ in 0 }
        let temporaryName = DownloadDestination.temporaryName(of: ".a.1.part").string
        _ = try folder.file(".a.1.part", size: 5)
        if hasTemporaryName { #expect(links(".a.1.part", temporaryName)) }
        #expect(try await !partFiles.seize(partFiles.checkpoint(of: ".a.1.part", below: folder.path), as: ".a.1-3.part"))
        // The suspended queue wakes and continues.
        #expect(!links(".a.1.part", "a"))
        #expect(!renames(".a.1.part", "a"))
        #expect(!renames(temporaryName, "a"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path.string).isEmpty)
    }

    @Test func seizedPartFileKeepsFinalName() async throws {
        let partFiles = partFiles { _ in 0 }
        _ = try folder.file(".a.1.part", size: 5)
        #expect(links(".a.1.part", "a"))
        #expect(try await partFiles.seize(partFiles.checkpoint(of: ".a.1.part", below: folder.path), as: ".a.1-3.part"))
        #expect(exists("a") && exists(".a.1-3.part") && !exists(".a.1.part"))
        // If the part file or its folder does not exist, no complete file exists either, so `seize` returns false.
        #expect(try await !partFiles.seize(partFiles.checkpoint(of: ".b.part", below: folder.path), as: ".b-3.part"))
        #expect(try await !partFiles.seize(partFiles.checkpoint(of: ".b.part", below: folder.path.appending("gone")), as: ".b-3.part"))
    }

    @Test func syncsEachFolder() async throws {
        let syncs = Locked(0)
        let partFiles = partFiles { _ in
            syncs.withLock { $0 += 1 }
            return 0
        }
        let names = try ["a", "b"].flatMap { name in
            try FileManager.default.createDirectory(atPath: folder.path.appending(name).string, withIntermediateDirectories: false)
            return try (0..<3).map { number in
                _ = try folder.file("\(name)/.\(number).part", size: 1)
                return "\(name)/.\(number).part"
            }
        }
        #expect(await partFiles.remove(names.map { partFiles.checkpoint(of: FilePath($0), below: folder.path) }).isEmpty)
        #expect(syncs.withLock { $0 } == 2 && !names.contains(where: exists))
    }

    @Test func hangingFolderDoesNotAffectOtherFolders() async throws {
        let (entered, exit, hangs) = (Latch(), DispatchSemaphore(value: 0), Locked(true))
        let partFiles = partFiles { _ in
            let hangs = hangs.withLock { hangs in
                defer { hangs = false }
                return hangs
            }
            guard hangs else { return 0 }
            entered.open()
            exit.wait()
            return 0
        }
        let other = folder.path.appending("other")
        try FileManager.default.createDirectory(atPath: other.string, withIntermediateDirectories: false)
        for name in [".a.part", ".b.part", "other/.c.part"] { _ = try folder.file(name, size: 1) }
        let (first, second) = (
            partFiles.checkpoint(of: ".a.part", below: folder.path), partFiles.checkpoint(of: ".b.part", below: folder.path)
        )
        async let hung = partFiles.remove([first])
        try await entered.wait()
        #expect(await partFiles.remove([second])[0]?.code == .timedOut)
        #expect(exists(".b.part"))
        #expect(await partFiles.remove([partFiles.checkpoint(of: ".c.part", below: other)]).isEmpty)
        #expect(!exists("other/.c.part"))
        exit.signal()
        #expect(await hung.isEmpty)
        #expect(await partFiles.remove([second]).isEmpty)
        #expect(!exists(".b.part"))
    }

    /// One of the part files can't be removed, because it is a folder.
    @Test func unremovablePartFileDoesNotAffectOtherPartFiles() async throws {
        let partFiles = partFiles { _ in 0 }
        for name in [".a.part", ".c.part"] { _ = try folder.file(name, size: 1) }
        try FileManager.default.createDirectory(atPath: folder.path.appending(".b.part").string, withIntermediateDirectories: false)
        let failures = await partFiles.remove([".a.part", ".b.part", ".c.part"].map { partFiles.checkpoint(of: $0, below: folder.path) })
        #expect(Array(failures.keys) == [1] && failures[1]?.message.contains(".b.part") == true)
        #expect(!exists(".a.part") && exists(".b.part") && !exists(".c.part"))
    }

    /// If the folder can't be synced, a power loss may restore the removed files, so the removals must count as failed.
    @Test func reportsUnsyncedRemovalAsFailure() async throws {
        let partFiles = partFiles { _ in
            errno = EIO
            return -1
        }
        for name in [".a.part", ".b.part"] { _ = try folder.file(name, size: 1) }
        let failures = await partFiles.remove([".a.part", ".b.part"].map { partFiles.checkpoint(of: $0, below: folder.path) })
        #expect(failures.count == 2 && failures.values.allSatisfy { !$0.message.isEmpty })
    }
}
