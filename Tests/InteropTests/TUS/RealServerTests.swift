import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTUS

@Suite struct RealServerTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    private func startServer(_ kind: RealServer.Kind, _ options: String = "{}") async throws -> RealServer {
        try await RealServer.start(kind, in: interop.folder.appending(path: "server"), options: options)
    }

    /// Server options for large files. By default, aiohttp accepts requests of up to 1 MiB.
    private func largeFileOptions(_ kind: RealServer.Kind) -> String {
        kind == .aiohttpTUS ? "{\"client_max_size\": 100000000}" : "{}"
    }

    @Test(arguments: RealServer.Kind.allCases)
    func uploadsFilesOfManySizes(kind: RealServer.Kind) async throws {
        let server = try await startServer(kind, largeFileOptions(kind))
        let queue = try await interop.openQueue(server.endpoint)
        let sizes = [1, 5_000, 65_536, 1 << 20, 20 << 20]
        let session = try await queue.enqueue(
            try .upload(
                sizes.map { try interop.file("file-\($0)", size: $0) }, to: "real", options: SessionOptions(filesInFlight: 1)))
        try await queue.start()
        #expect(try await session.value.statistics.filesDone == sizes.count)
        try await interop.checkContent(of: session, on: server)
        let requests = try server.requests
        // Servers that accept content in the creation request get each small file in one request.
        let small = kind.acceptsContentInCreation ? ["POST"] : ["POST", "PATCH"]
        #expect(requests.map(\.method) == ["OPTIONS"] + small + small + small + small + ["POST", "PATCH"])
        let metadata = try #require(requests.dropFirst().first?.metadata)
        #expect(metadata.contains("filename \(Data("file-1".utf8).base64EncodedString())"))
        #expect(metadata.contains("transferid \(Data("\(session.id)-0-1".utf8).base64EncodedString())"))
        await queue.shutdown()
    }

    @Test(arguments: RealServer.Kind.allCases) func recognizesTUSServer(kind: RealServer.Kind) async throws {
        let server = try await startServer(kind)
        let transport = TUSTransport()
        let report = try await transport.check(.tus(server.endpoint), credentials: ReferencedCredentials())
        #expect(report.version == "1.0.0")
        #expect(report.features.contains("creation"))
        #expect(try server.storedFiles.isEmpty, "the check creates no upload")
        await transport.shutdown()
    }

    @Test(arguments: RealServer.Kind.allCases)
    func uploadsEmptyFile(kind: RealServer.Kind) async throws {
        let server = try await startServer(kind)
        let queue = try await interop.openQueue(server.endpoint)
        let session = try await queue.enqueue(try .upload([interop.file("empty", size: 0)], to: "real"))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(try server.requests.map(\.method) == ["OPTIONS", "POST"])
        if kind == .aiohttpTUS {
            // aiohttp-tus completes uploads only with PATCH. An empty file needs no PATCH, so the server keeps only its internal record of
            // the upload. The client can't prevent this.
            #expect(try server.storedFiles.map { $0.hasPrefix(".resources/") } == [true])
        } else {
            try await interop.checkContent(of: session, on: server)
        }
        await queue.shutdown()
    }

    @Test(arguments: RealServer.Kind.allCases)
    func resumesAfterLostConnections(kind: RealServer.Kind) async throws {
        let server = try await startServer(kind, largeFileOptions(kind))
        let relay = try CuttingRelay(to: server.port)
        defer { relay.stop() }
        let queue = try await interop.openQueue(server.endpoint(port: Int(relay.port)))
        let events = queue.events
        // The connection breaks during a PATCH, during the HEAD after it, and during another PATCH.
        for bytes in [2 << 20, 40, 3 << 20] { relay.cut(afterBytes: bytes) }
        let session = try await queue.enqueue(
            try .upload(
                [interop.file("large", size: 20 << 20), interop.file("small", size: 9)], to: "real",
                options: SessionOptions(filesInFlight: 1)))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(relay.hasCutAll)
        try await interop.checkContent(of: session, on: server)
        var failures = 0
        for await event in events {
            if case .attemptFailed = event.kind { failures += 1 }
            if case .completed = event.kind { break }
        }
        let requests = try server.requests
        checkOffsets(requests)
        #expect(requests.count { $0.method == "OPTIONS" } == 1)
        #expect(requests.count { $0.method == "POST" } == 2)
        // After the connection breaks, the server may still process bytes that it received. If the server's offset grows after a HEAD, the
        // server rejects the next PATCH with 409.
        let conflicts = requests.count { $0.status == 409 }
        // A HEAD follows each failed PATCH: the two interrupted requests and the conflicts. Each attempt after a failed attempt also starts
        // with a HEAD. One of these HEAD requests was interrupted, and never reached the server.
        #expect(requests.count { $0.method == "HEAD" } == 2 + conflicts + failures - 1, "\(failures) attempts failed")
        // If the server's offset includes no byte of an interrupted request, the client compares the size at the end with a GET.
        #expect(Set(requests.map(\.method)).subtracting(["GET"]) == ["OPTIONS", "POST", "HEAD", "PATCH"])
        await queue.shutdown()
    }

    /// Each segment resumes separately, and none restarts.
    @Test(arguments: RealServer.Kind.allCases.filter(\.hasConcatenation))
    func resumesSegmentsAfterLostConnections(kind: RealServer.Kind) async throws {
        let server = try await startServer(kind)
        let relay = try CuttingRelay(to: server.port)
        defer { relay.stop() }
        let queue = try await interop.openQueue(
            server.endpoint(port: Int(relay.port)), settings: ["parallelThreshold": "1000000"])
        for bytes in [3 << 20, 2 << 20] { relay.cut(afterBytes: bytes) }
        let session = try await queue.enqueue(
            try .upload([interop.file("large", size: 16 << 20 + 3)], to: "real", options: SessionOptions(segmentsPerFile: 4)))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(relay.hasCutAll)
        try await interop.checkContent(of: session, on: server)
        let requests = try server.requests
        #expect(requests.count { $0.concat == "partial" } == 4)
        #expect(requests.count { $0.concat?.hasPrefix("final;") == true } == 1)
        // tuspyserver has already removed the partial uploads, and responds with 404.
        #expect(requests.filter { $0.method == "DELETE" }.map(\.status) == Array(repeating: kind == .tuspyserver ? 404 : 204, count: 4))
        checkOffsets(requests.filter { $0.concat?.hasPrefix("final;") != true })
        await queue.shutdown()
    }

    @Test(arguments: RealServer.Kind.allCases)
    func removesUploadOfCancelledSession(kind: RealServer.Kind) async throws {
        let server = try await startServer(kind)
        let queue = try await interop.openQueue(server.endpoint, settings: ["chunkSize": "1000000"])
        // The session is so slow that it is cancelled before it completes.
        let session = try await queue.enqueue(
            try .upload([interop.file("large", size: 20 << 20)], to: "real", options: SessionOptions(rateLimit: 2_000_000)))
        try await queue.start()
        await session.waitUntilSent(2_500_000)
        #expect(try server.storedFiles.count == 1)
        try await session.cancel(discarding: true)
        await queue.waitUntilIdle()
        let deletion = try #require(try server.requests.last)
        #expect(deletion.method == "DELETE")
        #expect(deletion.status == 204)
        #expect(try server.storedFiles.isEmpty)
        await queue.shutdown()
    }

    @Test func adaptsToRequestLimitOfFramework() async throws {
        // By default, aiohttp accepts requests of up to 1 MiB. It does not report this limit; it only rejects larger requests.
        let server = try await startServer(.aiohttpTUS)
        let queue = try await interop.openQueue(server.endpoint)
        let session = try await queue.enqueue(
            try .upload(
                ["first", "second"].map { try interop.file($0, size: 20 << 20) }, to: "real",
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100), filesInFlight: 1)))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: server)
        let requests = try server.requests
        checkOffsets(requests)
        let creations = requests.indices.filter { requests[$0].method == "POST" }
        let second = requests[try #require(creations.last)...]
        #expect(!second.contains { $0.method == "HEAD" }, "the transport remembers the size that works")
        await queue.shutdown()
    }

    @Test func reportsExistingName() async throws {
        let server = try await startServer(.aiohttpTUS)
        let queue = try await interop.openQueue(server.endpoint)
        // aiohttp-tus compares names without their extensions, and finds no match for a name without an extension.
        let path = try interop.file("file.bin", size: 1_000)
        let first = try await queue.enqueue(try .upload([path], to: "real"))
        try await queue.start()
        #expect(try await first.value.state == .completed)
        let second = try await queue.enqueue(try .upload([path], to: "real"))
        let error = await #expect(throws: TransferError.self) { try await second.value }
        #expect(error?.failureClass == .permanent)
        let refusal = "The server http://127.0.0.1:\(server.port) refused the upload; it may already have a file of that name"
        #expect(error?.message.hasPrefix(refusal) == true)
        #expect(error?.cause == "POST returned 409: 409: Conflict")
        #expect(try server.requests.map(\.method) == ["OPTIONS", "POST", "PATCH", "POST"], "the upload is not retried")
        await queue.shutdown()
    }
}
