import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite struct FileWriterTests {
    private let folder: DownloadsFolder
    private let threads = WorkerThreads(limit: 2)

    init() throws {
        folder = try DownloadsFolder()
    }

    private func open(_ destination: DownloadDestination, from confirmed: Int64 = 0) async throws -> FileWriter {
        try await FileWriter.open(destination, from: confirmed, on: threads)
    }

    private func receive(_ text: String, _ destination: DownloadDestination, modificationTime: Int64? = nil) async throws -> Bool {
        let writer = try await open(destination)
        try await writer.write(Data(text.utf8), at: 0)
        return try await writer.finish(size: Int64(text.utf8.count), modificationTime: modificationTime)
    }

    // MARK: Content

    @Test func fileGetsFinalNameOnlyAtEnd() async throws {
        let destination = folder.destination("a/b/file")
        let writer = try await open(destination)
        try await writer.write(Data("world".utf8), at: 6)
        try await writer.write(Data("hello ".utf8), at: 0)
        #expect(folder.names("a/b") == [".file.part"] && writer.start == 0 && !writer.isInPlace)
        #expect(try await writer.finish(size: 11, modificationTime: 1_500_000_000_123_456_789))
        #expect(folder.text("a/b/file") == "hello world")
        let identity = try SourceIdentity(ofFileAt: folder.root.appending("a/b/file"))
        #expect(identity.modificationTime == 1_500_000_000_123_456_789)
        #expect(
            try SourceIdentity(ofFileAt: destination.partPath).inode == identity.inode, "the part file remains a link to the same file")
    }

    @Test func keepsTimesBefore1970() async throws {
        #expect(try await receive("x", folder.destination("file"), modificationTime: -1_500_000_000))
        #expect(try SourceIdentity(ofFileAt: folder.root.appending("file")).modificationTime == -1_500_000_000)
    }

    @Test func detectsWrongSize() async throws {
        let writer = try await open(folder.destination("file"))
        try await writer.write(Data("hello".utf8), at: 0)
        for size in [4, 6] as [Int64] {
            let error = await #expect(throws: TransferError.self) { try await writer.finish(size: size) }
            #expect(error?.failureClass == .protocolViolation)
        }
        #expect(folder.names() == [".file.part"])
    }

    // MARK: Resuming

    @Test func truncatesPartFileToCheckpoint() async throws {
        let destination = folder.destination("file")
        try await open(destination).write(Data("hello, world".utf8), at: 0)
        let writer = try await open(destination, from: 5)
        #expect(writer.start == 5 && writer.syncedPosition == 5 && folder.text(".file.part") == "hello")
        try await writer.write(Data("!".utf8), at: 5)
        #expect(try await writer.finish(size: 6))
        #expect(folder.text("file") == "hello!")
    }

    @Test func rejectsMissingOrShortPartFile() async throws {
        let destination = folder.destination("file")
        let gone = await #expect(throws: TransferError.self) { try await open(destination, from: 1) }
        #expect(gone?.failureClass == .resumeLost && folder.names() == [])
        try await open(destination).write(Data("hello".utf8), at: 0)
        let short = await #expect(throws: TransferError.self) { try await open(destination, from: 6) }
        #expect(short?.failureClass == .resumeLost)
    }

    /// Once a download has its final name, the file belongs to the user, even if the queue has not stored the completion yet. Until the
    /// completion is stored, the part file is a second hard link to the same file.
    @Test(arguments: OverwritePolicy.allCases, [0, 3, 5] as [Int64])
    func keepsCompletedFileThatUserMoved(_ policy: OverwritePolicy, from confirmed: Int64) async throws {
        let destination = folder.destination("file", policy)
        #expect(try await receive("hello", destination))
        try FileManager.default.moveItem(atPath: folder.root.appending("file").string, toPath: folder.root.appending("mine").string)
        if confirmed == 0 {
            #expect(try await receive("other", destination))
            #expect(folder.text("file") == "other")
        } else {
            let error = await #expect(throws: TransferError.self) { try await open(destination, from: confirmed) }
            #expect(error?.failureClass == .resumeLost && folder.names() == ["mine"])
        }
        #expect(folder.text("mine") == "hello")
    }

    /// A replacement first gives the part file a second link with a temporary name, and then renames this link to the final name. A process
    /// that is killed between these steps leaves the link.
    @Test func repeatsInterruptedReplacement() async throws {
        try folder.write("mine", "file")
        let destination = folder.destination("file", .always)
        try await open(destination).write(Data("hello".utf8), at: 0)
        try FileManager.default.linkItem(
            atPath: destination.partPath.string,
            toPath: destination.root.pushing(DownloadDestination.temporaryName(of: destination.partName)).string)
        let writer = try await open(destination, from: 5)
        #expect(writer.start == 5)
        #expect(try await writer.finish(size: 5))
        #expect(folder.text("file") == "hello" && folder.names() == [".file.part", "file"])
    }

    @Test func replacesUnknownPartFile() async throws {
        let destination = folder.destination("file")
        try await open(destination).write(Data("something else".utf8), at: 0)
        #expect(try await receive("hello", destination))
        #expect(folder.text("file") == "hello")
    }

    @Test(arguments: OverwritePolicy.allCases) func recognizesFileInPlace(_ policy: OverwritePolicy) async throws {
        let destination = folder.destination("file", policy)
        #expect(try await receive("hello", destination, modificationTime: 1_000_000_000))
        for confirmed in [0, 3, 5] as [Int64] {
            let writer = try await open(destination, from: confirmed)
            #expect(writer.isInPlace && writer.start == 5)
            #expect(try await writer.finish(size: 5))
        }
        #expect(folder.text("file") == "hello" && folder.names() == [".file.part", "file"])
    }

    // MARK: Syncing

    @Test func syncsAfterEnoughBytesOrTime() async throws {
        let time = Locked(ContinuousClock.now)
        let writer = try await FileWriter.open(
            folder.destination("file"), from: 0, on: threads,
            syncing: SyncSchedule(at: time.withLock { $0 }) { time.withLock { $0 } })
        try await writer.write(Data("hello".utf8), at: 0)
        #expect(try await !writer.syncIfDue(upTo: 5))
        #expect(try await !writer.syncIfDue(upTo: 64 << 20 - 1) && writer.syncedPosition == 0)
        #expect(try await writer.syncIfDue(upTo: 64 << 20) && writer.syncedPosition == 64 << 20)
        time.withLock { $0 += .milliseconds(4_999) }
        #expect(try await !writer.syncIfDue(upTo: 64 << 20 + 1))
        time.withLock { $0 += .milliseconds(1) }
        #expect(try await !writer.syncIfDue(upTo: 64 << 20), "there are no new bytes")
        #expect(try await writer.syncIfDue(upTo: 64 << 20 + 1) && writer.syncedPosition == 64 << 20 + 1)
        try await writer.sync(upTo: 7)
        #expect(writer.syncedPosition == 64 << 20 + 1)
    }

    /// The operating system reports a failed write-back only once, and drops the bytes. A later sync of the same descriptor succeeds
    /// although the bytes are lost.
    @Test func laterSyncDoesNotConfirmLostBytes() async throws {
        let destination = folder.destination("file")
        let errors = Locked<[CInt]>([0, EIO])
        let writer = try await open(destination, failingSyncs: errors)
        try await writer.write(Data("hello".utf8), at: 0)
        try await writer.sync(upTo: 5)
        try await writer.write(Data(", world".utf8), at: 5)
        for _ in 0..<2 {
            let error = await #expect(throws: TransferError.self) { try await writer.sync(upTo: 12) }
            #expect(error?.failureClass == .transient && error?.message.contains(destination.partPath.string) == true)
        }
        try await writer.sync(upTo: 5)
        await #expect(throws: TransferError.self) { try await writer.finish(size: 12) }
        #expect(writer.syncedPosition == 5 && folder.names() == [".file.part"])
        let next = try await open(destination, from: 5)
        try await next.write(Data("!".utf8), at: 5)
        try await next.sync(upTo: 6)
        #expect(next.syncedPosition == 6)
        #expect(try await next.finish(size: 6))
    }

    @Test func remembersFailedSyncAtEnd() async throws {
        let writer = try await open(folder.destination("file"), failingSyncs: Locked([EIO]))
        try await writer.write(Data("hello".utf8), at: 0)
        await #expect(throws: TransferError.self) { try await writer.finish(size: 5) }
        await #expect(throws: TransferError.self) { try await writer.sync(upTo: 5) }
        await #expect(throws: TransferError.self) { try await writer.finish(size: 5) }
        #expect(writer.syncedPosition == 0 && folder.names() == [".file.part"])
    }

    /// - Parameter errors: The `errno` values of the next syncs, in order; 0 for success. All later syncs succeed.
    private func open(_ destination: DownloadDestination, failingSyncs errors: Locked<[CInt]>) async throws -> FileWriter {
        var faults = FinalNameFaults()
        faults.syncError = { errors.withLock { $0.isEmpty ? 0 : $0.removeFirst() } }
        return try await FileWriter.open(destination, from: 0, on: threads, syncing: SyncSchedule(at: .now), faults: faults)
    }

    // MARK: Existing files

    @Test func neverPolicyDoesNotReplaceFile() async throws {
        try folder.write("mine", "file")
        let early = await #expect(throws: TransferError.self) { try await open(folder.destination("file")) }
        #expect(early?.code == .fileExists && early?.message.contains(folder.root.appending("file").string) == true)
        #expect(folder.names() == ["file"])

        let late = try await open(folder.destination("other"))
        try await late.write(Data("hello".utf8), at: 0)
        try folder.write("mine", "other")
        let error = await #expect(throws: TransferError.self) { try await late.finish(size: 5) }
        #expect(error?.code == .fileExists && error?.failureClass == .permanent)
        #expect(folder.text("other") == "mine")
    }

    @Test func doesNotReplaceDanglingLink() async throws {
        try folder.link("file", to: "nowhere")
        let error = await #expect(throws: TransferError.self) { try await receive("hello", folder.destination("file")) }
        #expect(error?.code == .fileExists)
    }

    @Test func alwaysPolicyReplacesFile() async throws {
        try folder.write("mine", "file")
        #expect(try await receive("hello", folder.destination("file", .always)))
        #expect(folder.text("file") == "hello" && folder.names() == [".file.part", "file"])
    }

    @Test func replacesLinkItself() async throws {
        try folder.write("precious", "target")
        try folder.link("file", to: "target")
        #expect(try await receive("hello", folder.destination("file", .always)))
        #expect(folder.text("file") == "hello" && folder.text("target") == "precious")
    }

    @Test(arguments: [OverwritePolicy.always, .different, .newer]) func neverReplacesFolder(_ policy: OverwritePolicy) async throws {
        try folder.write("mine", "file/inside")
        let error = await #expect(throws: TransferError.self) {
            try await receive("hello", folder.destination("file", policy), modificationTime: 9_000_000_000_000_000_000)
        }
        #expect(error?.failureClass == .permanent && error?.message.contains("folder") == true && folder.text("file/inside") == "mine")
    }

    private static let second: Int64 = 1_000_000_000

    @Test func differentPolicyComparesSizeAndTime() async throws {
        let destination = folder.destination("file", .different)
        #expect(try await !isUpToDate(destination, size: 5, at: 7), "there is no file yet")
        #expect(try await receive("hello", destination, modificationTime: 7 * Self.second + 5))
        #expect(try await isUpToDate(destination, size: 5, at: 7), "a time in whole seconds is compared only to the second")
        #expect(try await isUpToDate(destination, size: 5, nanoseconds: 7 * Self.second + 5))
        #expect(try await isUpToDate(destination, size: 5, at: nil))
        #expect(try await !isUpToDate(destination, size: 5, nanoseconds: 7 * Self.second + 6))
        #expect(try await !isUpToDate(destination, size: 5, at: 8))
        #expect(try await !isUpToDate(destination, size: 6, at: 7))
        let error = await #expect(throws: TransferError.self) { try await isUpToDate(destination, size: nil, at: 7) }
        #expect(error?.failureClass == .unsupported)
    }

    @Test func newerPolicyComparesTimes() async throws {
        let destination = folder.destination("file", .newer)
        #expect(try await receive("hello", destination, modificationTime: 7 * Self.second))
        #expect(try await isUpToDate(destination, size: 999, at: 7))
        #expect(try await isUpToDate(destination, size: nil, at: 6))
        #expect(try await !isUpToDate(destination, size: 5, at: 8))
        let error = await #expect(throws: TransferError.self) { try await isUpToDate(destination, size: 5, at: nil) }
        #expect(error?.failureClass == .unsupported)
    }

    @Test func keepsFileThatBecameIdentical() async throws {
        let destination = folder.destination("file", .different)
        let writer = try await open(destination)
        try await writer.write(Data("hello".utf8), at: 0)
        try folder.write("HELLO", "file")
        #expect(try await !writer.finish(size: 5))
        #expect(folder.text("file") == "HELLO" && folder.names() == ["file"])
    }

    @Test(arguments: [OverwritePolicy.never, .always, .rename]) func otherPoliciesDoNotCompareFiles(_ policy: OverwritePolicy) async throws
    {
        try folder.write("hello", "file")
        #expect(try await !isUpToDate(folder.destination("file", policy), size: 5, at: nil))
    }

    @Test func skipsExistingFile() async throws {
        let destination = folder.destination("file", .skip)
        #expect(try await !isUpToDate(destination, size: 5, at: nil), "there is no file yet")
        let writer = try await open(destination)
        try await writer.write(Data("hello".utf8), at: 0)
        try folder.write("mine", "file/inside")
        #expect(try await isUpToDate(destination, size: nil, at: nil))
        #expect(try await !writer.finish(size: 5))
        #expect(folder.text("file/inside") == "mine" && folder.names() == ["file"])
    }

    @Test func addsNumberToNewFile() async throws {
        for (number, name) in (["reel.tar.gz", "reel.tar (1).gz", "reel.tar (2).gz"] as [FilePath]).enumerated() {
            let partFile = FilePath("\(number).part")
            let destination = DownloadDestination(root: folder.root, name: "reel.tar.gz", partName: partFile, overwrite: .rename)
            let writer = try await open(destination)
            try await writer.write(Data("hello \(number)".utf8), at: 0)
            #expect(try await writer.finish(size: 7))
            #expect(writer.finalPath == folder.root.pushing(name) && folder.text(name) == "hello \(number)")
            // Simulates the next attempt, after the process was killed before it stored the completion.
            let again = try await open(destination, from: 3)
            #expect(try await again.finish(size: 7))
            #expect(again.isInPlace && again.finalPath == writer.finalPath)
        }
        #expect(folder.names().filter { !$0.hasSuffix(".part") }.count == 3)
    }

    @Test(arguments: [(".hidden", ".hidden (1)"), ("plain", "plain (1)"), (String(repeating: "x", count: 255), nil)])
    func insertsNumberBeforeExtension(_ name: String, _ expected: String?) async throws {
        try folder.write("mine", FilePath(name))
        let destination = DownloadDestination(root: folder.root, name: FilePath(name), partName: "part", overwrite: .rename)
        let writer = try await open(destination)
        try await writer.finish(size: 0)
        let final = try #require(writer.finalPath.lastComponent?.string)
        #expect(final == expected ?? String(repeating: "x", count: 251) + " (1)")
        #expect(folder.text(FilePath(final)) == "" && folder.text(FilePath(name)) == "mine")
    }

    @Test func doesNotStartWithoutFreeSpace() async throws {
        let destination = folder.destination("file")
        let size: Int64 = 1 << 62
        let error = await #expect(throws: TransferError.self) { try await FileWriter.open(destination, size: size, on: threads) }
        #expect(error?.failureClass == .noSpace && error?.message.contains(destination.path.string) == true && folder.names() == [])
        let writer = try await FileWriter.open(destination, size: 5, on: threads)
        try await writer.write(Data("hello".utf8), at: 0)
        let late = await #expect(throws: TransferError.self) { try await FileWriter.open(destination, from: 5, size: size, on: threads) }
        #expect(late?.failureClass == .noSpace && folder.text(".file.part") == "hello")
        _ = try await FileWriter.open(destination, from: 5, size: 5, on: threads)
    }

    private func isUpToDate(_ destination: DownloadDestination, size: Int64?, at seconds: Int64?) async throws -> Bool {
        try await isUpToDate(destination, size: size, nanoseconds: seconds.map { $0 * Self.second })
    }

    private func isUpToDate(_ destination: DownloadDestination, size: Int64?, nanoseconds: Int64?) async throws -> Bool {
        try await FileWriter.isUpToDate(destination, size: size, modificationTime: nanoseconds, on: threads)
    }
}
