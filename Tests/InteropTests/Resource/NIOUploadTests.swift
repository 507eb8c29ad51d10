import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportTUS

/// Uploads with the IETF protocol *Resumable Uploads for HTTP* to swift-nio-extras, whose final responses contain the opposite header:
/// `Upload-Complete` instead of `Upload-Incomplete`, or the reverse.
@Suite struct NIOUploadTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    static let versions = ["6", "5", "3"]

    /// Returns a transport that uses the given version, and does not query the server's version.
    static func transport(_ version: String) throws -> TUSTransport {
        TUSTransport(dialect: try #require(Dialect.ietfVersions.first { $0.version == version }), now: { .now })
    }

    private func transport(_ version: String) throws -> TUSTransport { try Self.transport(version) }

    @Test func detectsVersionOfServer() async throws {
        let server = try await NIOUploadServer()
        let transport = TUSTransport()
        for settings in [["dialect": "ietf"], [:]] {
            let upload = DirectUpload(transport, to: server.url, settings: settings)
            let report = try await transport.check(upload.endpoint, credentials: DirectUpload.Passphrase())
            #expect(report.version == "Resumable Uploads for HTTP (draft version 6)")
            let path = try interop.file("a\(settings.count)", size: 100_000)
            _ = try await upload.run(path)
            #expect(try server.files.last == interop.content(path))
        }
        await transport.shutdown()
        await server.stop()
    }

    /// The connection of each upload breaks once: near the start, at one of two positions within the content, or shortly before its end.
    @Test(arguments: versions) func resumesAfterLostConnections(version: String) async throws {
        // More than the sockets of client, relay and server can buffer, so the server announces the upload before all content is sent.
        let size = 32 << 20
        let server = try await NIOUploadServer()
        let transport = try transport(version)
        for cut in [1 << 10, 100_000, 1 << 20, size - 1] {
            let relay = try CuttingRelay(to: Int(server.reservedPort.port))
            relay.cut(afterBytes: cut)
            let path = try interop.file("file-\(cut)", size: size)
            let upload = DirectUpload(
                transport, to: "http://127.0.0.1:\(relay.port)/files",
                settings: ["origins": "http://127.0.0.1:\(server.reservedPort.port)"])
            let (receipt, failures) = try await upload.complete(path)
            #expect(receipt.bytes == Int64(size) && failures >= 1, "cut after \(cut) bytes")
            #expect(try server.files.last == interop.content(path), "cut after \(cut) bytes")
            relay.stop()
        }
        #expect(server.files.count == 4, "no file arrives twice")
        await transport.shutdown()
        await server.stop()
    }

    @Test(arguments: versions) func sendsChunksAndEmptyFiles(version: String) async throws {
        let server = try await NIOUploadServer()
        let transport = try transport(version)
        var upload = DirectUpload(transport, to: server.url)
        upload.options.chunkSize = 30_000
        for size in [100_000, 0] {
            let path = try interop.file("file-\(size)", size: size)
            _ = try await upload.run(path)
            #expect(try server.files.last == interop.content(path))
        }
        await transport.shutdown()
        await server.stop()
    }

    /// The length of the stream is unknown. The connection does not break, or breaks in the first or the last request with content, or between them.
    /// Confirmed bytes of the stream can't be read again.
    @Test(arguments: versions, [nil, 1 << 10, 700_000, (2 << 20) - 1] as [Int?]) func sendsStream(version: String, cut: Int?) async throws {
        let size = 2 << 20
        let server = try await NIOUploadServer(usesRelativeLocation: true)
        let transport = try transport(version)
        let relay = try CuttingRelay(to: Int(server.reservedPort.port))
        if let cut { relay.cut(.fromClient, inAllAfter: cut) }
        let upload = DirectUpload(transport, to: "http://127.0.0.1:\(relay.port)/files")
        let file = try TemporaryFile(size: size)
        let stream = try TestStream(file, total: size, ahead: 300_000)
        let (receipt, failures) = try await upload.complete(file.path, stream: stream.source)
        #expect(receipt.bytes == Int64(size) && !stream.wasRequested.withLock { $0 }, "the stream is sent while it grows")
        #expect(server.files == [Data(TemporaryFile.content(size: size))])
        #expect(failures <= (cut == nil ? 0 : 1))
        #expect(cut == nil || relay.connectionCount > 1)
        relay.stop()
        await transport.shutdown()
        await server.stop()
    }

    /// After the upload of a file was removed, the file can't resume.
    @Test(arguments: versions) func removesUpload(version: String) async throws {
        let server = try await NIOUploadServer()
        let transport = try transport(version)
        let relay = try CuttingRelay(to: Int(server.reservedPort.port))
        relay.cut(afterBytes: 1 << 20)
        let path = try interop.file("file", size: 32 << 20)
        let upload = DirectUpload(
            transport, to: "http://127.0.0.1:\(relay.port)/files",
            settings: ["origins": "http://127.0.0.1:\(server.reservedPort.port)"])
        #expect(await #expect(throws: TransferError.self) { try await upload.run(path) }?.failureClass == .transient)
        let checkpoint = try #require(upload.checkpoint(of: path))
        try await transport.discard(checkpoint, at: upload.endpoint, credentials: DirectUpload.Passphrase())
        #expect(await #expect(throws: TransferError.self) { try await upload.run(path) }?.failureClass == .resumeLost)
        #expect(server.files.isEmpty)
        relay.stop()
        await transport.shutdown()
        await server.stop()
    }

    /// The server forgets complete uploads, so a lost response leaves the outcome unknown.
    @Test(arguments: versions) func reportsUnknownOutcome(version: String) async throws {
        let server = try await NIOUploadServer()
        let transport = try transport(version)
        let relay = try CuttingRelay(to: Int(server.reservedPort.port))
        let path = try interop.file("file", size: 100_000)
        let upload = DirectUpload(
            transport, to: "http://127.0.0.1:\(relay.port)/files",
            settings: ["origins": "http://127.0.0.1:\(server.reservedPort.port)"])
        // The interim response passes; the final response does not.
        relay.cut(.fromServer, inAllAfter: 300)
        let error = await #expect(throws: TransferError.self) { try await upload.complete(path) }
        #expect(error?.code == .outcomeUnknown)
        #expect(server.files.count == 1)
        relay.stop()
        await transport.shutdown()
        await server.stop()
    }
}
