import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP
import TransportTesting

/// Folders and verification with the WebDAV servers Apache (mod_dav), nginx (with its module for WebDAV) and WsgiDAV.
@Suite(.timeLimit(.minutes(10)))
struct WebDAVTests {
    enum Server: String, CaseIterable, Sendable {
        case apache, nginx, wsgidav

        /// Starts the server. Its files are in the folder `server/files` of the fixture.
        func start(in interop: InteropFixture) async throws -> PythonProcess {
            let folder = interop.folder.appending(path: "server")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            return try await PythonProcess.runBlocking { try PythonProcess("webdav_server.py", [rawValue, folder.path]) }
        }
    }

    private let interop: InteropFixture
    private let local: URL
    private let stored: URL

    init() throws {
        interop = try InteropFixture()
        local = interop.folder.appending(path: "local")
        stored = interop.folder.appending(path: "server/files")
        try FileManager.default.createDirectory(at: local, withIntermediateDirectories: true)
    }

    private func openQueue(_ server: PythonProcess, _ options: HTTPOptions = HTTPOptions(webDAV: true)) async throws -> TransferQueue {
        try await interop.openQueue(
            Account("real", endpoints: [.http("http+put://127.0.0.1:\(server.port)/", options: options)]), transports: [HTTPTransport()])
    }

    /// The contents of all files in a folder, by relative path; for folders, nil.
    private func tree(_ folder: URL) throws -> [String: Data?] {
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        return Dictionary(uniqueKeysWithValues: paths.map { ($0, FileManager.default.contents(atPath: folder.appending(path: $0).path)) })
    }

    /// One server for all promises, because servers start slowly.
    @Test(arguments: Server.allCases) func keepsListingPromises(_ kind: Server) async throws {
        let server = try await kind.start(in: interop)
        // nginx lists no names that begin with a dot, and the promise `namesAreKept` needs such a name.
        for promise in ListingPromise.allCases where kind != .nginx || promise != .namesAreKept {
            let fixture = try FilesFixture(interop, port: server.port, transport: HTTPTransport()) {
                .http("http+put\($0)", credentials: $1, options: HTTPOptions(webDAV: true))
            }
            do {
                try await promise.verify(fixture)
            } catch {
                await fixture.close()
                throw error
            }
            await fixture.close()
        }
        withExtendedLifetime(server) {}
    }

    @Test(arguments: Server.allCases) func transfersTreesInBothDirections(_ kind: Server) async throws {
        let server = try await kind.start(in: interop)
        let trip = local.appending(path: "trip")
        let names = (0..<60).map { "many/\($0 % 5)/\($0)" } + ["deep/a/b/c/d/file", "50% #1?/ünï & \"x\" 🎬", "top"]
        for (number, name) in names.enumerated() {
            let file = trip.appending(path: name)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data((0..<(number * 50)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) }).write(to: file)
        }
        let expected = try tree(trip)
        let queue = try await openQueue(server)
        let options = SessionOptions(filesInFlight: 16)
        let upload = try await queue.enqueue(
            .upload(items: [TransferItem(FilePath(trip.path), as: "in/trip")], to: "real", options: options))
        try await queue.start()
        #expect(try await upload.value.statistics.filesDone == names.count)
        #expect(try tree(stored.appending(path: "in/trip")) == expected)

        let target = local.appending(path: "target")
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
        let download = try await queue.enqueue(
            .download(items: [.remoteFolder(try RemotePath("in/trip"))], from: "real", to: FilePath(target.path), options: options))
        let status = try await download.value
        await queue.waitUntilIdle()
        #expect(status.statistics.filesDone == names.count)
        #expect(status.statistics.bytesTotal == Int64(expected.values.reduce(0) { $0 + ($1?.count ?? 0) }))
        let arrived = try tree(target.appending(path: "trip"))
        #expect(arrived.keys.sorted() == expected.keys.sorted())
        #expect(arrived == expected)

        let whole = local.appending(path: "whole")
        try FileManager.default.createDirectory(at: whole, withIntermediateDirectories: false)
        let all = try await queue.enqueue(
            .download(items: [.remoteFolder(RemotePath.endpointFolder)], from: "real", to: FilePath(whole.path), options: options))
        #expect(try await all.value.statistics.filesDone == names.count)
        await queue.waitUntilIdle()
        #expect(try tree(whole.appending(path: "in/trip")) == expected)
        await queue.shutdown()
        withExtendedLifetime(server) {}
    }

    @Test(arguments: Server.allCases) func distinguishesFilesFromFolders(_ kind: Server) async throws {
        let server = try await kind.start(in: interop)
        try Data("abc".utf8).write(to: stored.appending(path: "file"))
        try FileManager.default.createDirectory(at: stored.appending(path: "folder/empty"), withIntermediateDirectories: true)
        try Data("inside".utf8).write(to: stored.appending(path: "folder/inside"))
        let queue = try await openQueue(server)
        let items: [TransferItem] = [
            .remoteFolder(try RemotePath("file")), .remoteFolder(try RemotePath("gone")), .remote(try RemotePath("folder")),
        ]
        let session = try await queue.enqueue(.download(items: items, from: "real", to: FilePath(local.path)))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        await queue.waitUntilIdle()
        let origin = "http://127.0.0.1:\(server.port)"
        let messages = try await queue.items(of: session.id).compactMap(\.error?.message)
        #expect(messages == ["file is a file at \(origin), not a folder.", "The server \(origin) has no folder gone."])
        // The third item requests a folder as if it were a file. The queue downloads the folder anyway.
        let arrived = try tree(local.appending(path: "folder"))
        #expect(arrived.keys.sorted() == ["inside"] && arrived == ["inside": Data("inside".utf8)], "\(arrived)")
        await queue.shutdown()
        withExtendedLifetime(server) {}
    }

    /// Without the setting `webDAV`, the servers store no file in a missing folder.
    @Test(arguments: Server.allCases) func createsFoldersOnlyOnRequest(_ kind: Server) async throws {
        let server = try await kind.start(in: interop)
        let queue = try await openQueue(server, HTTPOptions())
        let file = try interop.file("a.mov", size: 10)
        let session = try await queue.enqueue(
            .upload(
                items: [TransferItem(file, as: "new/a.mov")], to: "real", options: SessionOptions(retry: RetryPolicy(maximumAttempts: 1))))
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(!FileManager.default.fileExists(atPath: stored.appending(path: "new").path))
        await queue.shutdown()
        withExtendedLifetime(server) {}
    }

    /// None of these servers reports checksums, so the transport reads the file back.
    @Test(arguments: Server.allCases) func verifiesUploads(_ kind: Server) async throws {
        let server = try await kind.start(in: interop)
        let file = try interop.file("a.mov", size: 300_000)
        for (verification, hasChecksum) in [(Verification.checksum, true), (.size, false)] {
            let queue = try await openQueue(server, HTTPOptions(uploadCheck: .head, webDAV: true))
            let session = try await queue.enqueue(
                .upload(
                    items: [TransferItem(file, as: "\(verification)/a.mov")], to: "real",
                    options: SessionOptions(verification: verification)))
            try await queue.start()
            #expect(try await session.value.state == .completed)
            let item = try #require(try await queue.items(of: session.id).first)
            #expect((item.checksum != nil) == hasChecksum && item.warnings.isEmpty, "\(item)")
            await queue.shutdown()
        }
        withExtendedLifetime(server) {}
    }
}
