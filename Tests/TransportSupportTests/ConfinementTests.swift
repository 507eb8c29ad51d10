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

/// Verifies that a download never writes outside its folder, even if an attacker plants links in the folder.
@Suite struct ConfinementTests {
    private let folder: DownloadsFolder
    private let outside: DownloadsFolder
    private let threads = WorkerThreads(limit: 2)

    init() throws {
        folder = try DownloadsFolder()
        outside = try DownloadsFolder()
    }

    private func refusal(_ name: FilePath, partFile: FilePath? = nil, _ policy: OverwritePolicy = .always) async throws -> TransferError? {
        let partFile = partFile ?? name.removingLastComponent().appending(".part")
        let destination = DownloadDestination(root: folder.root, name: name, partName: partFile, overwrite: policy)
        return await #expect(throws: TransferError.self, "\(name)") { try await FileWriter.open(destination, on: threads) }
    }

    @Test(arguments: ["../file", "a/../../file", "/etc/file", "..", ".", "", "a/.."]) func rejectsEscapingNames(_ name: String)
        async throws
    {
        let error = try await refusal(FilePath(name))
        #expect(error?.failureClass == .permanent)
        #expect(folder.names() == [] && outside.names() == [])
    }

    /// Another process may have created a folder without syncing its parent, so the parents of existing folders are synced, too.
    @Test func syncsParentsOfNewAndExistingFolders() throws {
        try FileManager.default.createDirectory(atPath: folder.root.appending("a").string, withIntermediateDirectories: false)
        var synced: [UInt64] = []
        let opened = try ConfinedFolder.open(folder.root, parentOf: "a/b/file", creates: true) { descriptor in
            var status = stat()
            guard unsafe fstat(descriptor.rawValue, &status) == 0 else { return -1 }
            synced.append(UInt64(status.st_ino))
            return 0
        }
        try opened.folder.close()
        let inodes = [folder.root, folder.root.appending("a")].map { path in
            var status = stat()
            return unsafe path.withPlatformString { unsafe lstat($0, &status) } == 0 ? UInt64(status.st_ino) : 0
        }
        #expect(synced == inodes)
    }

    @Test func rejectsPartFileInOtherFolder() async throws {
        for partFile in ["../part", "b/part", "/tmp/part", ""] as [FilePath] { _ = try await refusal("a/file", partFile: partFile) }
        #expect(folder.names() == [])
    }

    @Test func doesNotFollowLinkInPath() async throws {
        try folder.link("sub", to: outside.root.string)
        for name in ["sub/file", "sub/deeper/file"] as [FilePath] {
            let error = try await refusal(name)
            #expect(error?.failureClass == .permanent && error?.message.contains(folder.root.appending("sub").string) == true)
        }
        #expect(outside.names() == [])
    }

    @Test func doesNotFollowLinkPlantedDuringDownload() async throws {
        let writer = try await FileWriter.open(folder.destination("sub/file", .always), on: threads)
        try await writer.write(Data("hello".utf8), at: 0)
        try FileManager.default.moveItem(atPath: folder.root.appending("sub").string, toPath: folder.root.appending("moved").string)
        try folder.link("sub", to: outside.root.string)
        #expect(try await writer.finish(size: 5))
        #expect(outside.names() == [] && folder.text("moved/file") == "hello")
    }

    @Test func replacesLinkInPlaceOfPartFile() async throws {
        try outside.write("precious", "target")
        try folder.link(".file.part", to: outside.root.appending("target").string)
        let writer = try await FileWriter.open(folder.destination("file"), on: threads)
        try await writer.write(Data("hello".utf8), at: 0)
        #expect(try await writer.finish(size: 5))
        #expect(folder.text("file") == "hello" && outside.text("target") == "precious")
        try folder.link(".other.part", to: outside.root.appending("target").string)
        let lost = await #expect(throws: TransferError.self) {
            try await FileWriter.open(folder.destination("other"), from: 3, on: threads)
        }
        #expect(lost?.failureClass == .resumeLost && outside.text("target") == "precious")
    }

    @Test func doesNotBlockOnFIFOInPlaceOfPartFile() async throws {
        #expect(unsafe mkfifo(folder.root.appending(".file.part").string, 0o600) == 0)
        let writer = try await FileWriter.open(folder.destination("file"), on: threads)
        try await writer.write(Data("hello".utf8), at: 0)
        #expect(try await writer.finish(size: 5))
        #expect(folder.text("file") == "hello")
    }

    @Test func rootMayBeReachedThroughLink() async throws {
        try outside.link("sub", to: folder.root.string)
        let destination = DownloadDestination(root: outside.root.appending("sub"), name: "file", partName: ".part")
        try await FileWriter.open(destination, on: threads).finish(size: 0)
        #expect(folder.text("file") == "")
    }

    // MARK: Disk errors

    @Test func errorsContainPath() async throws {
        let missing = DownloadDestination(root: folder.root.appending("missing"), name: "a/file", partName: "a/.part")
        let gone = await #expect(throws: TransferError.self) { try await FileWriter.open(missing, on: threads) }
        #expect(gone?.failureClass == .permanent && gone?.message.contains("missing") == true && folder.names() == [])
        try folder.write("x", "file")
        let inTheWay = try await refusal("file/below")
        #expect(inTheWay?.failureClass == .permanent && inTheWay?.message.contains(folder.root.appending("file").string) == true)
        let long = try await refusal(FilePath(String(repeating: "n", count: 300)), partFile: ".part")
        #expect(long?.failureClass == .permanent)
    }

    @Test func classifiesDiskErrors() {
        for code in [ENOSPC, EDQUOT, EMFILE, ENFILE] {
            #expect(TransferError.destinationUnavailable("/x", errno: code).failureClass == .noSpace)
        }
        #expect(TransferError.destinationUnavailable("/x", errno: EIO).failureClass == .transient)
        for code in [EACCES, EPERM, EROFS, ELOOP, ENOTDIR, EISDIR, ENAMETOOLONG, EFBIG, ENOENT, EINVAL] {
            let error = TransferError.destinationUnavailable("/x/y", errno: code)
            #expect(error.failureClass == .permanent && error.message.contains("/x/y"))
        }
    }
}
