import Foundation
import SystemPackage
import Testing
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Downloads to file systems without hard links, such as FAT. Tests may lack permission to mount such a file system, so they simulate one.
@Suite struct PlacingWithoutLinksTests {
    private static let text = "hello world"

    private let folder: DownloadsFolder

    init() throws {
        folder = try DownloadsFolder()
    }

    private static func open(
        _ destination: DownloadDestination, from confirmed: Int64 = 0, isExclusive: Bool,
        _ reached: @escaping @Sendable (FinalNameFaults.Step) -> Void = { _ in }
    ) async throws -> FileWriter {
        var faults = FinalNameFaults()
        faults.refusesLinks = true
        faults.refusesExclusiveRename = !isExclusive
        faults.reached = reached
        return try await FileWriter.open(
            destination, from: confirmed, on: WorkerThreads(limit: 1), syncing: SyncSchedule(at: .now), faults: faults)
    }

    private static func receive(
        _ destination: DownloadDestination, isExclusive: Bool, _ reached: @escaping @Sendable (FinalNameFaults.Step) -> Void = { _ in }
    ) async throws -> FileWriter {
        let writer = try await open(destination, isExclusive: isExclusive, reached)
        try await writer.write(Data(text.utf8), at: 0)
        try await writer.sync(upTo: Int64(text.utf8.count))
        #expect(try await writer.finish(size: Int64(text.utf8.count)))
        return writer
    }

    @Test(arguments: [true, false], OverwritePolicy.allCases)
    func recognizesFileInPlace(_ isExclusive: Bool, _ policy: OverwritePolicy) async throws {
        let destination = folder.destination("file", policy)
        if policy == .rename { try folder.write("other", "file") }
        let path = try await Self.receive(destination, isExclusive: isExclusive).finalPath
        #expect(path == folder.root.appending(policy == .rename ? "file (1)" : "file"))
        for confirmed in [0, 5, 11] as [Int64] {
            let again = try await Self.open(destination, from: confirmed, isExclusive: isExclusive)
            #expect(again.isInPlace && again.start == 11)
            #expect(try await again.finish(size: 11))
            #expect(again.finalPath == path)
        }
        #expect(try String(contentsOf: URL(filePath: path.string), encoding: .utf8) == Self.text)
        if policy == .rename { #expect(folder.text("file") == "other") }
    }

    @Test func doesNotMistakeOtherFileForDownload() async throws {
        let destination = folder.destination("file")
        _ = try await Self.receive(destination, isExclusive: true)
        try FileManager.default.removeItem(atPath: destination.path.string)
        try folder.write("a stranger's", "file")
        let error = await #expect(throws: TransferError.self) { try await Self.open(destination, from: 11, isExclusive: true) }
        #expect(error?.code == .fileExists)
        #expect(folder.text("file") == "a stranger's")
    }

    @Test(arguments: [true, false]) func doesNotReplaceFileCreatedDuringDownload(_ isExclusive: Bool) async throws {
        let destination = folder.destination("file")
        let writer = try await Self.open(destination, isExclusive: isExclusive) { [folder] step in
            if step == .noted { try? folder.write("other", "file") }
        }
        try await writer.write(Data("hello".utf8), at: 0)
        let error = await #expect(throws: TransferError.self) { try await writer.finish(size: 5) }
        #expect(error?.code == .fileExists)
        #expect(folder.text("file") == "other")
    }

    /// Gives a file another inode number, as FAT does if the file system is mounted again. Also rounds the modification time down to two
    /// seconds, the resolution of FAT.
    private func renumber(_ name: String) throws {
        let path = folder.root.appending(name).string
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        let time = try #require(attributes[.modificationDate] as? Date).timeIntervalSince1970
        try FileManager.default.moveItem(atPath: path, toPath: path + ".old")
        try FileManager.default.copyItem(atPath: path + ".old", toPath: path)
        let rounded = Date(timeIntervalSince1970: (time / 2).rounded(.down) * 2)
        try FileManager.default.setAttributes([.modificationDate: rounded], ofItemAtPath: path)
        try FileManager.default.removeItem(atPath: path + ".old")
    }

    /// If the part file still exists, a file with the final name is not the download, even if its size and modification time are the same.
    @Test func replacesEarlierVersionAfterKill() async throws {
        let destination = folder.destination("file", .always)
        let writer = try await Self.open(destination, isExclusive: true) { [folder] step in
            // Keep a copy of the part file, as if the process had been killed before the rename.
            guard step == .noted else { return }
            try? FileManager.default.copyItem(
                atPath: folder.root.appending(".file.part").string, toPath: folder.root.appending("kept").string)
        }
        try await writer.write(Data(Self.text.utf8), at: 0)
        #expect(try await writer.finish(size: 11, modificationTime: 1_000_000_000_000_000_000))
        try FileManager.default.moveItem(
            atPath: folder.root.appending("kept").string, toPath: folder.root.appending(".file.part").string)
        try folder.write("HELLO WORLD", "file")
        for name in ["file", ".file.part"] {
            let time = Date(timeIntervalSince1970: 1_000_000_000)
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: folder.root.appending(name).string)
        }
        let again = try await Self.open(destination, from: 11, isExclusive: true)
        #expect(!again.isInPlace)
        #expect(try await again.finish(size: 11))
        #expect(folder.text("file") == Self.text)
    }

    @Test func notesAreParsed() {
        for reservesName in [false, true] {
            let note = FinalNameNote(identity: [1, UInt64.max], size: 11, modificationTime: -5, reservesName: reservesName, name: "a b")
            #expect(FinalNameNote(note.bytes) == note)
        }
        #expect(FinalNameNote(Array("1 2 3 4\nfile".utf8))?.name == "file")
        for text in ["", "1 2 3\nfile", "1 2 3 4 reserves x\nfile", "1 2 3 4 x\nfile", "1 2 3 4\n../file", "1 2 3 4\n", "-1 2 3 4\nfile"] {
            #expect(FinalNameNote(Array(text.utf8)) == nil, "\(text)")
        }
    }

    /// Kills a child process at each step of giving the file its final name. The next attempt completes, and leaves no empty file.
    @Test(arguments: FinalNameFaults.Step.allCases, [OverwritePolicy.never, .always, .rename].flatMap { [($0, false), ($0, true)] })
    func recoversFromKill(_ step: FinalNameFaults.Step, at destination: (policy: OverwritePolicy, isMountedAgain: Bool)) async throws {
        let (policy, isMountedAgain) = destination
        let isExclusive = step != .reserved
        guard step != .reserved || policy != .always else { return }
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [
                root = folder.root.string as String, policy = policy.rawValue as String,
                step = "\(step)" as String, isExclusive = isExclusive as Bool
            ] in
            let destination = DownloadDestination(
                root: FilePath(root), name: "file", partName: ".file.part", overwrite: OverwritePolicy(rawValue: policy) ?? .never)
            _ = try await Self.receive(destination, isExclusive: isExclusive) { if "\($0)" == step { kill(getpid(), SIGKILL) } }
        }
        if isMountedAgain { try renumber(step == .renamed ? "file" : ".file.part") }
        let destination = folder.destination("file", policy)
        let writer = try await Self.open(destination, from: 11, isExclusive: isExclusive)
        #expect(writer.isInPlace == (step == .renamed))
        #expect(try await writer.finish(size: 11))
        #expect(writer.finalPath == folder.root.appending("file"))
        #expect(folder.text("file") == Self.text)
        #expect(folder.names() == [".file.part.new", "file"])
    }
}
