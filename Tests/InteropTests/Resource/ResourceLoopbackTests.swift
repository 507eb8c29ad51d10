import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit
import TransportTUS

@Suite struct ResourceLoopbackTests {
    private let interop: InteropFixture
    private let transport = TUSTransport()
    static let dialects = LoopbackDialect.allCases.filter { $0 != .tus }

    init() throws {
        interop = try InteropFixture()
    }

    private func open(
        _ options: LoopbackOptions, _ attempt: AttemptOptions = AttemptOptions(), settings: [String: String] = [:]
    ) async throws -> (TUSLoopbackServer, DirectUpload) {
        let server = interop.loopbackServer(options)
        let url = try await server.start()
        let upload = DirectUpload(transport, to: url.absoluteString, settings: ["dialect": "ietf"].merging(settings) { $1 }, attempt)
        return (server, upload)
    }

    private func close(_ server: TUSLoopbackServer) async {
        await transport.shutdown()
        await server.stop()
    }

    private func check(_ path: FilePath, on server: TUSLoopbackServer, _ comment: Comment = "") throws {
        let stored = server.storedFiles(named: path.lastComponent?.string ?? "").map { try? Data(contentsOf: URL(filePath: $0.string)) }
        #expect(try stored == [interop.content(path)], comment)
        #expect(!server.statistics.uploads.contains { !$0.isComplete }, comment)
    }

    @Test(arguments: dialects) func sendsFileInOneRequest(dialect: LoopbackDialect) async throws {
        let (server, upload) = try await open(LoopbackOptions(dialect: dialect))
        // The server of the final protocol does not name a version, so the client sends the first file only after it has created the upload.
        _ = try await upload.run(try interop.file("first", size: 10))
        for size in [0, 1, 100_000, 3 << 20] {
            let path = try interop.file("file-\(size)", size: size)
            let receipt = try await upload.run(path)
            #expect(receipt.remoteURL?.contains("/files/") == true && receipt.warnings.isEmpty)
            try check(path, on: server)
        }
        #expect(server.statistics.requests["POST"] == 5 && server.statistics.requests["PATCH"] == (dialect == .final ? 1 : nil))
        #expect(server.statistics.requests["HEAD"] == nil)
        await close(server)
    }

    /// The connection breaks after the given number of content bytes, possibly after the last one. No byte is stored twice, and there is only one
    /// upload of the file.
    @Test(arguments: dialects, [0, 1, 1000, 1 << 20, (3 << 20) - 1, 3 << 20]) func resumesAfterCut(dialect: LoopbackDialect, cut: Int64)
        async throws
    {
        let (server, upload) = try await open(LoopbackOptions(dialect: dialect, progressInterval: 500_000))
        // From the server's first interim response, the client learns that the server speaks the final protocol.
        _ = try await upload.run(try interop.file("first", size: 10))
        server.inject(.cut(afterBodyBytes: cut))
        let path = try interop.file("file", size: 3 << 20)
        let (_, failures) = try await upload.complete(path)
        #expect(failures == 1)
        try check(path, on: server, "one upload, with the content of the file")
        #expect(server.statistics.bytesStored == 10 + (3 << 20), "no byte is stored twice")
        await close(server)
    }

    @Test(arguments: dialects, [true, false]) func queriesOutcomeAfterLostResponse(dialect: LoopbackDialect, forgets: Bool) async throws {
        let (server, upload) = try await open(LoopbackOptions(dialect: dialect, forgetsCompleteUploads: forgets))
        _ = try await upload.run(try interop.file("first", size: 10))
        server.inject(.loseFinalResponse)
        let path = try interop.file("file", size: 100_000)
        if forgets {
            let error = await #expect(throws: TransferError.self) { try await upload.complete(path) }
            #expect(error?.code == .outcomeUnknown)
        } else {
            let (receipt, failures) = try await upload.complete(path)
            #expect(failures == 1 && receipt.warnings.count == 1)
        }
        try check(path, on: server)
        #expect(server.statistics.requests["POST"] == 2 && server.statistics.requests["PATCH"] == (dialect == .final ? 1 : nil))
        await close(server)
    }

    /// Without interim responses, the client never learns the URL of an upload whose creation was interrupted, so it creates a second upload. The
    /// second upload resumes.
    @Test(arguments: dialects.filter { $0 != .final }) func resumesWithoutInterimResponses(dialect: LoopbackDialect) async throws {
        let (server, upload) = try await open(LoopbackOptions(dialect: dialect, sendsInterimResponses: false))
        server.inject(.cut(afterBodyBytes: 1 << 20))
        server.inject(.cut(afterBodyBytes: 500_000))
        let path = try interop.file("file", size: 32 << 20)
        let (_, failures) = try await upload.complete(path)
        #expect(failures == 2)
        let uploads = server.statistics.uploads
        #expect(uploads.map(\.isComplete) == [false, true])
        #expect(
            uploads.last?.requests.map { "\($0.method) \($0.received)" } == [
                "POST 0", "PATCH 500000", "HEAD 0", "HEAD 0", "PATCH \((32 << 20) - 500_000)",
            ])
        await close(server)
    }

    @Test(arguments: dialects) func obeysLimits(dialect: LoopbackDialect) async throws {
        let (server, upload) = try await open(
            LoopbackOptions(maximumSize: 250_000, dialect: dialect, minimumSize: 10, maximumAppendSize: 60_000, minimumAppendSize: 50_000))
        let path = try interop.file("file", size: 200_000)
        _ = try await upload.run(path)
        try check(path, on: server)
        #expect(server.statistics.uploads[0].requests.map(\.received) == [0, 60_000, 60_000, 60_000, 20_000])
        for (size, code) in [(250_001, TransferError.Code.tooLarge), (9, .rejected)] {
            let error = await #expect(throws: TransferError.self) { try await upload.run(try interop.file("other-\(size)", size: size)) }
            #expect(error?.code == code && error?.failureClass == .unsupported)
        }
        #expect(server.statistics.requests["POST"] == 1, "the client knows the limits from OPTIONS")
        let report = try await transport.check(upload.endpoint, credentials: DirectUpload.Passphrase())
        #expect(report.maximumSize == 250_000)
        #expect(report.limits == ["min-size": 10, "max-append-size": 60_000, "min-append-size": 50_000])
        await close(server)
    }

    @Test(arguments: dialects) func comparesDigests(dialect: LoopbackDialect) async throws {
        let (server, upload) = try await open(LoopbackOptions(dialect: dialect), AttemptOptions(verification: .checksum))
        let path = try interop.file("file", size: 3 << 20)
        #expect(try await upload.run(path).checksum?.hasPrefix("sha256:") == true)
        _ = try await upload.run(try interop.file("first", size: 10))
        server.inject(.cut(afterBodyBytes: 1 << 20))
        let other = try interop.file("other", size: 3 << 20)
        #expect(try await upload.complete(other).receipt.checksum?.hasPrefix("sha256:") == true)
        try check(other, on: server)
        await close(server)
    }

    /// The queue keeps at most 1 MiB of the stream, so the stream can't be read again.
    @Test(arguments: dialects) func comparesDigestOfStream(dialect: LoopbackDialect) async throws {
        let server = interop.loopbackServer(LoopbackOptions(dialect: dialect))
        let url = try await server.start()
        let queue = try await interop.openQueue(url.absoluteString, settings: ["dialect": "ietf"])
        let content = try interop.content(interop.file("content", size: 3_000_000))
        let (stream, writer) = TransferItem.stream(as: "stream", ahead: 1 << 20)
        let session = try await queue.enqueue(
            .upload(items: [stream], to: "real", options: SessionOptions(verification: .checksum)))
        try await queue.start()
        for start in stride(from: 0, to: content.count, by: 70_000) {
            try await writer.write(Data(content[start..<min(start + 70_000, content.count)]))
        }
        writer.finish()
        #expect(try await session.value.state == .completed)
        #expect(try await queue.items(of: session.id).first?.checksum?.hasPrefix("sha256:") == true)
        #expect(try server.storedFiles(named: "stream").map { try interop.content($0) } == [content])
        await queue.shutdown()
        await server.stop()
    }

    /// The server restarts with another version of the protocol, and still has the upload.
    @Test(
        arguments: [(.draft6, .draft8), (.draft8, .draft10), (.draft10, .draft9), (.draft9, .final), (.final, .draft6)]
            as [(LoopbackDialect, LoopbackDialect)])
    func resumesAfterServerChangesVersion(old: LoopbackDialect, new: LoopbackDialect) async throws {
        let (server, upload) = try await open(LoopbackOptions(dialect: old))
        _ = try await upload.run(try interop.file("first", size: 10))
        server.inject(.cut(afterBodyBytes: 1 << 20))
        let path = try interop.file("file", size: 3 << 20)
        await #expect(throws: TransferError.self) { try await upload.run(path) }
        let port = try #require(URL(string: upload.endpoint.address)?.port)
        await server.stop()
        let next = TUSLoopbackServer(
            folder: FilePath(interop.folder.appending(path: "server").path), port: UInt16(port), options: LoopbackOptions(dialect: new))
        _ = try await next.start()
        _ = try await upload.complete(path)
        try check(path, on: next)
        #expect(next.statistics.bytesStored == 2 << 20 && next.statistics.requests["POST"] == nil, "the upload resumes")
        await close(next)
    }

    /// The transport reports an upload as verified only if the server reports a digest. Without a digest, the upload fails.
    @Test func failsWithoutDigest() async throws {
        let (server, upload) = try await open(
            LoopbackOptions(dialect: .draft10, reportsDigests: false), AttemptOptions(verification: .checksum))
        let error = await #expect(throws: TransferError.self) { try await upload.run(try interop.file("file", size: 1000)) }
        #expect(error?.failureClass == .unsupported && error?.message.contains("Repr-Digest") == true)
        await close(server)
    }

    /// The queue resumes a file after a lost connection, and removes the unfinished upload of a cancelled session with `DELETE`.
    @Test(arguments: dialects) func queueResumesAndRemovesUploads(dialect: LoopbackDialect) async throws {
        let server = interop.loopbackServer(LoopbackOptions(dialect: dialect, progressInterval: 100_000))
        let url = try await server.start()
        let queue = try await interop.openQueue(url.absoluteString, settings: ["dialect": "ietf"])
        server.inject(.cut(afterBodyBytes: 1 << 20))
        let session = try await queue.enqueue(try .upload([interop.file("a", size: 3 << 20), interop.file("b", size: 10)], to: "real"))
        try await queue.start()
        await queue.waitUntilIdle()
        #expect(try await queue.items(of: session.id).allSatisfy { $0.remoteURL?.contains("/files/") == true })
        for name in ["a", "b"] { #expect(server.statistics.uploads.contains { $0.filename == name && $0.isComplete }) }
        server.stopContent(at: 1 << 20)
        let other = try await queue.enqueue(try .upload([interop.file("c", size: 3 << 20)], to: "real"))
        for await statistics in other.progress where statistics.bytesDone > 0 { break }
        try await other.cancel(discarding: true)
        await queue.waitUntilIdle()
        #expect(server.statistics.requests["DELETE"] == 1)
        await queue.shutdown()
        await server.stop()
    }

    @Test func detectsProtocol() async throws {
        let (server, upload) = try await open(LoopbackOptions(dialect: .draft8), settings: ["dialect": "auto"])
        // The request has no version header, so the server rejects it and names its own version.
        let report = try await transport.check(upload.endpoint, credentials: DirectUpload.Passphrase())
        #expect(report.version == "Resumable Uploads for HTTP (draft version 8)")
        let path = try interop.file("file", size: 1000)
        _ = try await upload.run(path)
        try check(path, on: server)
        await close(server)
    }

    /// Resumes an upload with a new transport, as after a restart of the process.
    @Test(arguments: dialects) func resumesWithNewTransport(dialect: LoopbackDialect) async throws {
        let (server, upload) = try await open(LoopbackOptions(dialect: dialect))
        _ = try await upload.run(try interop.file("first", size: 10))
        server.inject(.cut(afterBodyBytes: 1 << 20))
        let path = try interop.file("file", size: 3 << 20)
        await #expect(throws: TransferError.self) { try await upload.run(path) }
        let other = TUSTransport()
        var resumed = upload
        resumed.transport = other
        _ = try await resumed.run(path)
        try check(path, on: server)
        await other.shutdown()
        await close(server)
    }
}
