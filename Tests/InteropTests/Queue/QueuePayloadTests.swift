import Foundation
import ProcessFixture
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP
import TransportTUS

/// Streams and downloads through the queue, with independent servers.
@Suite struct QueuePayloadTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    /// Uploads a stream, although some of these servers require the length when an upload is created.
    @Test(arguments: RealServer.Kind.allCases) func uploadsStream(kind: RealServer.Kind) async throws {
        let options = kind == .aiohttpTUS ? "{\"client_max_size\": 100000000}" : "{}"
        let server = try await RealServer.start(kind, in: interop.folder.appending(path: "server"), options: options)
        let queue = try await interop.openQueue(server.endpoint)
        let content = try interop.content(interop.file("content", size: 3_000_000))
        let (stream, writer) = TransferItem.stream(as: try RemotePath("stream.bin"))
        let session = try await queue.enqueue(try .upload(items: [stream], to: "real"))
        try await queue.start()
        for start in stride(from: 0, to: content.count, by: 70_000) {
            try await writer.write(Data(content[start..<min(start + 70_000, content.count)]))
        }
        writer.finish()
        #expect(try await session.value.statistics.bytesDone == content.count)
        let item = try #require(try await queue.items(of: session.id).first)
        #expect(try server.content(of: try #require(item.remoteURL), named: "stream.bin") == content)
        #expect(try server.requests.count { $0.method == "POST" && $0.status == 201 } == 1)
        await queue.shutdown()
    }

    /// The stream is much longer than the excerpt that the storage folder may contain.
    @Test func storesOnlyUnconfirmedBytesOfLiveStream() async throws {
        let server = try ScriptedServer { _, _ in [.read(nil), .answer(201)] }
        defer { server.stop() }
        let endpoint = Endpoint.http("http+put://127.0.0.1:\(server.port)/")
        let queue = try await interop.openQueue(Account("real", endpoints: [endpoint]), transports: [HTTPTransport()])
        let (stream, writer) = TransferItem.stream(as: "live", ahead: 1 << 20)
        let session = try await queue.enqueue(.upload(items: [stream], to: "real"))
        try await queue.start()
        let (block, size) = (Data(repeating: 0xA5, count: 256 << 10), 48 << 20)
        var largest = 0
        for _ in 0..<size / block.count {
            try await writer.write(block)
            largest = max(largest, Self.spooledBytes(in: interop.folder.appending(path: "store")))
        }
        writer.finish()
        #expect(try await session.value.statistics.bytesDone == size)
        #expect(server.requests.last?.body.count == size)
        // For plain HTTP, the queue keeps the first 4 MiB of the stream. After that, it frees the sent bytes after every 4 MiB.
        #expect(largest > 0 && largest <= 12 << 20, "\(largest)")
        await queue.shutdown()
    }

    /// The disk space, in bytes, of the files in the spool of a storage folder.
    private static func spooledBytes(in storageFolder: URL) -> Int {
        let spool = storageFolder.appending(path: "spool")
        // The queue creates the folder with the first file.
        return (try? FileManager.default.contentsOfDirectory(atPath: spool.path))?.reduce(0) { sum, name in
            var status = stat()
            // The queue may have removed the file.
            guard unsafe stat(spool.appending(path: name).path, &status) == 0 else { return sum }
            return sum + Int(status.st_blocks) * 512
        } ?? 0
    }

    @Test func resumesDownloadsAfterLostConnectionAndRestart() async throws {
        let server = try await FilesFixture.startServer(in: interop)
        let fixture = try FilesFixture(interop, port: server.port)
        let account = Account("real", endpoints: [.tus(fixture.endpoint.address)])
        let sizes = ["empty": 0, "folder/small": 10_000, "large": 20 << 20]
        for (name, size) in sizes {
            try await fixture.provide(interop.content(interop.file("content", size: size)), as: RemotePath(name))
        }
        let items = try ["empty", "folder/small", "large"].map { TransferItem.remote(try RemotePath($0), as: FilePath($0)) }
        try await fixture.cut(afterBytes: 8 << 20)
        var queue = try await interop.openQueue(account)
        let session = try await queue.enqueue(try .download(items: items, from: "real", to: fixture.folder))
        try await queue.start()
        // More bytes have arrived than before the connection broke, so the download has resumed.
        await session.waitUntilSent(10 << 20)
        await queue.shutdown()
        queue = try await interop.openQueue(account)
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.status(of: session.id).statistics.filesDone == 3)
        for (name, size) in sizes {
            let received = try interop.content(fixture.folder.appending(name))
            #expect(try received == interop.content(interop.file("content", size: size)), "\(name)")
        }
        #expect(
            try FileManager.default.subpathsOfDirectory(atPath: fixture.folder.string).sorted() == [
                "empty", "folder", "folder/small", "large",
            ])
        let ranges = try fixture.requests.filter { $0[1] == "206" }
        #expect(!ranges.isEmpty && ranges.allSatisfy { $0[2].hasPrefix("bytes=") })
        await queue.shutdown()
        await fixture.close()
        withExtendedLifetime(server) {}
    }
}
