import Foundation
import Glibc
import Locking
import Logging
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP
import TransportTesting

extension SSHFilesFixture: ListingFixture {
    func makeFolder(_ path: RemotePath) async throws {
        try FileManager.default.createDirectory(at: files.appending(path: path.description), withIntermediateDirectories: true)
    }
}

/// Downloads of folders from an OpenSSH server through a real queue.
@Suite(.timeLimit(.minutes(10)))
struct SFTPFolderTests {
    @Test(arguments: ListingPromise.allCases)
    func keepsListingPromise(_ promise: ListingPromise) async throws {
        let fixture = try await SSHFilesFixture(cutting: .fromServer)
        do {
            try await promise.verify(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }

    /// The contents of all files in a folder and its subfolders, by relative path. Names may be arbitrary bytes.
    private static func tree(_ folder: URL) throws -> [Data: Data] {
        var files: [Data: Data] = [:]
        let root = FilePath(folder.path)
        var remainingFolders: [[UInt8]] = [[]]
        while let relative = remainingFolders.popLast() {
            let path = relative.isEmpty ? root : FilePath(bytes: root.bytes + [UInt8(ascii: "/")] + relative)
            guard let handle = unsafe path.withPlatformString({ unsafe opendir($0) }) else { throw Errno(rawValue: errno) }
            defer { unsafe closedir(handle) }
            while let entry = unsafe readdir(handle) {
                let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { unsafe Array($0.prefix { $0 != 0 }) }
                guard ![".", ".."].map({ Array($0.utf8) }).contains(name) else { continue }
                let child = (relative.isEmpty ? [] : relative + [UInt8(ascii: "/")]) + name
                let childPath = FilePath(bytes: root.bytes + [UInt8(ascii: "/")] + child)
                if unsafe entry.pointee.d_type == UInt8(DT_DIR) {
                    remainingFolders.append(child)
                } else {
                    let file = try FileDescriptor.open(childPath, .readOnly)
                    files[Data(child)] = try file.closeAfter {
                        try FileHandle(fileDescriptor: file.rawValue, closeOnDealloc: false).readToEnd() ?? Data()
                    }
                }
            }
        }
        return files
    }

    private static func write(_ content: Data, to name: [UInt8], in folder: URL) throws {
        let path = FilePath(bytes: FilePath(folder.path).bytes + [UInt8(ascii: "/")] + name)
        let parent = path.removingLastComponent()
        let result = unsafe parent.withPlatformString { unsafe mkdir($0, 0o755) }
        guard result == 0 || errno == EEXIST else { throw Errno(rawValue: errno) }
        let file = try FileDescriptor.open(path, .writeOnly, options: [.create, .truncate], permissions: [.ownerReadWrite])
        try file.closeAfter { _ = try file.writeAll(content) }
    }

    private static func queue(_ folder: SFTPServerFolder, _ endpoint: Endpoint? = nil) async throws -> TransferQueue {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        let queue = try await TransferQueue(
            storage: .folder(FilePath(folder.local.path).appending("store")), transports: [SFTPTransport()], configuration: configuration)
        if await queue.account("a") == nil {
            try await queue.save(Account("a", endpoints: [try endpoint ?? folder.endpoint()]))
        }
        return queue
    }

    private static func content(_ size: Int, _ seed: Int) -> Data {
        Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ seed) })
    }

    @Test func downloadsWholeTree() async throws {
        let folder = try await SFTPServerFolder()
        let trip = folder.files.appending(path: "some/trip")
        try FileManager.default.createDirectory(at: trip.appending(path: "empty"), withIntermediateDirectories: true)
        for number in 0..<150 { try Self.write(Self.content(number * 7, number), to: Array("many/\(number)".utf8), in: trip) }
        try Self.write(Self.content(3_000_000, 1), to: Array("large".utf8), in: trip)
        for (number, name) in ["-n it's", "two\nlines", "ünï", "tab\there"].enumerated() {
            try Self.write(Self.content(100, number), to: Array(name.utf8), in: trip)
        }
        try Self.write(Self.content(50, 9), to: [0xFF, 0xFE, 0x2F, 0xC3, 0x28], in: trip)
        let expected = try Self.tree(trip)
        try FileManager.default.createSymbolicLink(atPath: trip.appending(path: "link").path, withDestinationPath: "/etc")
        try FileManager.default.createSymbolicLink(atPath: trip.appending(path: "many/up").path, withDestinationPath: "..")

        let target = folder.local.appending(path: "target")
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
        let queue = try await Self.queue(folder)
        let session = try await queue.enqueue(
            .download(items: [.remoteFolder(try RemotePath("some/trip"))], from: "a", to: FilePath(target.path)))
        try await queue.start()
        let status = try await session.value
        #expect(status.statistics.files == expected.count && status.statistics.filesDone == expected.count)
        #expect(status.statistics.bytesTotal == Int64(expected.values.reduce(0) { $0 + $1.count }))
        await queue.waitUntilIdle()
        #expect(try Self.tree(target.appending(path: "trip")) == expected)
        #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == ["trip"])
        let skipped = try await queue.items(of: session.id).filter { $0.state == .skipped }
        #expect(skipped.map(\.destination.description).sorted() == ["some/trip/link", "some/trip/many/up"])

        let whole = folder.local.appending(path: "whole")
        try FileManager.default.createDirectory(at: whole, withIntermediateDirectories: false)
        let all = try await queue.enqueue(.download(items: [.remoteFolder(RemotePath.endpointFolder)], from: "a", to: FilePath(whole.path)))
        #expect(try await all.value.statistics.filesDone == expected.count)
        await queue.waitUntilIdle()
        #expect(try Self.tree(whole.appending(path: "some/trip")) == expected)
        await queue.shutdown()
        await folder.close()
    }

    /// The connection breaks while the server lists folders or sends files.
    @Test(arguments: [2_000, 10_000, 60_000]) func losesNoFileWhenConnectionBreaks(after bytes: Int) async throws {
        let folder = try await SFTPServerFolder()
        for number in 0..<120 {
            try Self.write(Self.content(500, number), to: Array("trip-\(number / 30)/\(number)".utf8), in: folder.files)
        }
        try FileManager.default.createDirectory(at: folder.files.appending(path: "all"), withIntermediateDirectories: true)
        for number in 0..<4 {
            try FileManager.default.moveItem(
                at: folder.files.appending(path: "trip-\(number)"), to: folder.files.appending(path: "all/trip-\(number)"))
        }
        let relay = try CuttingRelay(to: Int(folder.server.port))
        let queue = try await Self.queue(folder, try folder.endpoint(port: UInt16(relay.port)))
        let target = folder.local.appending(path: "target")
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
        let options = SessionOptions(retry: RetryPolicy(base: .milliseconds(10)))
        let session = try await queue.enqueue(
            .download(items: [.remoteFolder(try RemotePath("all"))], from: "a", to: FilePath(target.path), options: options))
        relay.cut(.fromServer, inAllAfter: bytes)
        try await queue.start()
        #expect(try await session.value.statistics.filesDone == 120)
        await queue.waitUntilIdle()
        #expect(try Self.tree(target.appending(path: "all")) == Self.tree(folder.files.appending(path: "all")))
        await queue.shutdown()
        relay.stop()
        await folder.close()
    }

    @Test func distinguishesFilesFromFolders() async throws {
        let folder = try await SFTPServerFolder()
        try Data("abc".utf8).write(to: folder.files.appending(path: "file"))
        try Self.write(Data("inside".utf8), to: Array("folder/inside".utf8), in: folder.files)
        let queue = try await Self.queue(folder)
        let items: [TransferItem] = [
            .remoteFolder(try RemotePath("file")), .remoteFolder(try RemotePath("gone")), .remote(try RemotePath("folder")),
        ]
        let target = folder.local.appending(path: "target")
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
        let session = try await queue.enqueue(.download(items: items, from: "a", to: FilePath(target.path)))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        await queue.waitUntilIdle()
        let server = "127.0.0.1:\(folder.server.port)"
        let messages = try await queue.items(of: session.id).compactMap(\.error?.message)
        #expect(
            messages == [
                "file is a file at \(server), not a folder.", "\(server) has no folder gone.",
            ])
        // The third item requests a folder as if it were a file. The queue downloads the folder anyway.
        #expect(try Self.tree(target) == [Data("folder/inside".utf8): Data("inside".utf8)])
        await queue.shutdown()
        await folder.close()
    }
}
