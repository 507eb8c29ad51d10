import Foundation
import Locking
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTUS

/// Uploads by the tus transport over TLS and HTTP/2, through nginx, to independent tus servers.
@Suite struct NginxHTTP2Tests {
    private let interop: InteropFixture
    private let transport = TUSTransport()

    init() throws {
        interop = try InteropFixture()
    }

    private struct Site {
        let server: RealServer
        let proxy: NginxProxy
        let upload: DirectUpload

        func checkContent(_ receipt: TransferReceipt, _ path: FilePath, _ interop: InteropFixture) throws {
            let name = try #require(path.lastComponent).string
            #expect(try server.content(of: try #require(receipt.remoteURL), named: name) == interop.content(path), "\(path)")
        }
    }

    /// Starts a server and nginx, and prepares an upload.
    ///
    /// - Parameter startRelay: Starts a relay to the given port, and returns the relay's port. By default, there is no relay.
    private func open(
        _ kind: RealServer.Kind = .resumableUpload, streams: Bool = false, server options: String = "{}",
        largestBody: String = "100m", settings: [String: String] = [:], _ attempt: AttemptOptions = AttemptOptions(),
        startingRelay startRelay: (Int) throws -> Int = { $0 }
    ) async throws -> Site {
        let options = kind == .aiohttpTUS && options == "{}" ? "{\"client_max_size\": 100000000}" : options
        let server = try await RealServer.start(kind, in: interop.folder.appending(path: "server"), options: options)
        let proxy = try await NginxProxy.start(
            in: interop.folder.appending(path: "proxy"), forwardingTo: server.port, largestBody: largestBody,
            options: NginxProxy.Options(streams: streams, secures: kind == .aiohttpTUS))
        let path = URL(string: server.endpoint)?.path(percentEncoded: true) ?? ""
        let upload = DirectUpload(
            transport, to: "https://127.0.0.1:\(try startRelay(proxy.port))\(path)",
            settings: ["caFile": proxy.certificate, "httpVersion": "2"].merging(settings) { $1 }, attempt)
        return Site(server: server, proxy: proxy, upload: upload)
    }

    @Test(arguments: RealServer.Kind.allCases, [true, false])
    func resumesAfterLostConnections(kind: RealServer.Kind, streams: Bool) async throws {
        let startedRelay = Locked<CuttingRelay?>(nil)
        let site = try await open(kind, streams: streams) { port in
            let relay = try CuttingRelay(to: port)
            startedRelay.withLock { $0 = relay }
            return Int(relay.port)
        }
        let relay = try #require(startedRelay.withLock { $0 })
        defer { relay.stop() }
        relay.cut(afterBytes: 8 << 20)
        relay.cut(afterBytes: 3 << 20)
        let path = try interop.file("large", size: 20 << 20)
        let (receipt, failures) = try await site.upload.complete(path)
        #expect(failures >= 1)
        #expect(relay.hasCutAll)
        try site.checkContent(receipt, path, interop)
        checkOffsets(try site.server.requests)
        let requests = try await site.proxy.requests
        #expect(requests.allSatisfy { $0.version == "HTTP/2.0" })
        #expect(requests.count { $0.method == "POST" } == 1, "the upload resumes and does not restart")
        #expect(requests.count { $0.method == "OPTIONS" } == 1)
        let patches = requests.filter { $0.method == "PATCH" }
        // After the connection breaks, the server may still process bytes that it received. If the server's offset grows after a HEAD, the
        // server rejects the next PATCH with 409.
        let conflicts = patches.count { $0.status == 409 }
        #expect(patches.count { $0.status != 204 } == 2 + conflicts)
        // A HEAD follows each failed PATCH: the two interrupted requests and the conflicts. Each attempt after a failed attempt also starts
        // with a HEAD.
        #expect(requests.count { $0.method == "HEAD" } == 2 + conflicts + failures)
        // The limit is 1 MiB more than the file, to permit the overhead of HTTP/2.
        #expect(patches.filter { $0.status == 204 }.map(\.length).reduce(0, +) < 21 << 20, "acknowledged bytes are not sent again")
        await transport.shutdown()
    }

    /// nginx buffers each body until it is complete, and accepts at most 1 MiB.
    @Test(arguments: RealServer.Kind.allCases) func adaptsToBodyLimit(kind: RealServer.Kind) async throws {
        let site = try await open(kind, largestBody: "1m")
        let path = try interop.file("large", size: 10 << 20 + 1)
        let (receipt, failures) = try await site.upload.complete(path)
        #expect(failures == 0, "the first attempt finds the limit and completes")
        try site.checkContent(receipt, path, interop)
        checkOffsets(try site.server.requests)
        let patches = try await site.proxy.requests.filter { $0.method == "PATCH" }
        // Each 413 halves the body size, from 10 MiB down to 640 KiB.
        #expect(patches.count { $0.status == 413 } == 4)
        // 10 MiB take 16 requests of 640 KiB. The additional byte takes one more request.
        #expect(patches.count { $0.status == 204 } == 17)
        #expect(patches.filter { $0.status == 204 }.allSatisfy { $0.length < 1 << 20 })
        await transport.shutdown()
    }

    /// The CONNECT proxy sees only TLS to nginx.
    @Test func tunnelsThroughProxy() async throws {
        let site = try await open()
        let port = site.proxy.port
        let started = try await PythonProcess.runBlocking { try PythonProcess("connect_proxy.py", ["\(port)"]) }
        var upload = site.upload
        upload.endpoint.settings["proxy"] = "http://127.0.0.1:\(started.port)"
        let path = try interop.file("large", size: 3 << 20)
        let receipt = try await upload.run(path)
        try site.checkContent(receipt, path, interop)
        let requests = try await site.proxy.requests
        #expect(requests.map(\.method) == ["OPTIONS", "POST", "PATCH"])
        #expect(requests.allSatisfy { $0.version == "HTTP/2.0" })
        // After the proxy is killed, the upload fails. This shows that the transport does not bypass the proxy.
        started.kill()
        await #expect(throws: TransferError.self) { try await upload.run(path) }
        await transport.shutdown()
    }

    /// All uploads share one connection. The cancellation of one upload does not close this connection.
    @Test(arguments: [RealServer.Kind.resumableUpload, .aiohttpTUS], [true, false])
    func cancelsOneOfSeveralUploads(kind: RealServer.Kind, streams: Bool) async throws {
        let site = try await open(kind, streams: streams)
        let first = try interop.file("first", size: 10 << 20)
        let others = try (1...3).map { try interop.file("other-\($0)", size: 5 << 20) }

        let granted = Locked(1 << 20)
        let (firstPaused, firstPausedContinuation) = AsyncStream.makeStream(of: Void.self)
        var cancelled = site.upload
        cancelled.allowance = { limit in
            let bytes = granted.withLock { granted in
                let bytes = min(limit, granted)
                granted -= bytes
                return bytes
            }
            if bytes == 0 { firstPausedContinuation.finish() }
            return Allowance(bytes: bytes, retryAfter: .seconds(3_600))
        }
        let task = Task { [cancelled] in try await cancelled.run(first) }
        for await _ in firstPaused {}

        let isUnlimited = Locked(false)
        let (pausedUploads, pausedContinuation) = AsyncStream.makeStream(of: FilePath.self)
        let receipts = try await withThrowingTaskGroup(of: (FilePath, TransferReceipt).self) { group in
            for path in others {
                let granted = Locked(2 << 20)
                var upload = site.upload
                upload.allowance = { limit in
                    if isUnlimited.withLock({ $0 }) { return Allowance(bytes: limit) }
                    let bytes = granted.withLock { granted in
                        let bytes = min(limit, granted)
                        granted -= bytes
                        return bytes
                    }
                    if bytes == 0 { pausedContinuation.yield(path) }
                    return Allowance(bytes: bytes, retryAfter: .milliseconds(5))
                }
                group.addTask { [upload] in (path, try await upload.run(path)) }
            }
            var paused: Set<FilePath> = []
            for await path in pausedUploads {
                paused.insert(path)
                if paused.count == others.count { break }
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            isUnlimited.withLock { $0 = true }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        for path in others { try site.checkContent(try #require(receipts[path]), path, interop) }
        // The connection remains usable, even for the file whose upload was cancelled.
        let (receipt, failures) = try await site.upload.complete(first)
        #expect(failures == 0)
        try site.checkContent(receipt, first, interop)
        let requests = try await site.proxy.requests
        #expect(requests.allSatisfy { $0.version == "HTTP/2.0" })
        #expect(Set(requests.map(\.connection)).count == 1)
        #expect(requests.count { $0.method == "PATCH" && $0.status == 204 } == 4)
        await transport.shutdown()
    }

    @Test func removesUploadOfCancelledSession() async throws {
        let site = try await open(settings: ["chunkSize": "1000000"])
        let queue = try await interop.openQueue(Account("real", endpoints: [site.upload.endpoint]))
        // The session is so slow that it is cancelled before it completes.
        let session = try await queue.enqueue(
            try .upload([interop.file("large", size: 20 << 20)], to: "real", options: SessionOptions(rateLimit: 2_000_000)))
        try await queue.start()
        await session.waitUntilSent(2_500_000)
        #expect(try site.server.storedFiles.count == 1)
        try await session.cancel(discarding: true)
        await queue.waitUntilIdle()
        let deletions = try await site.proxy.requests.filter { $0.method == "DELETE" }
        #expect(deletions.map { "\($0.version) \($0.status)" } == ["HTTP/2.0 204"])
        #expect(try site.server.storedFiles.isEmpty)
        await queue.shutdown()
        await transport.shutdown()
    }

    @Test(arguments: [RealServer.Kind.resumableUpload, .tuspyserver])
    func sendsSegmentsInParallel(kind: RealServer.Kind) async throws {
        let site = try await open(kind, settings: ["parallelThreshold": "1000000"], AttemptOptions(segmentsPerFile: 4))
        let path = try interop.file("large", size: 8 << 20 + 3)
        let receipt = try await site.upload.run(path)
        try site.checkContent(receipt, path, interop)
        #expect(receipt.warnings.isEmpty)
        let requests = try site.server.requests
        #expect(requests.count { $0.concat == "partial" } == 4)
        #expect(requests.count { $0.concat?.hasPrefix("final;") == true } == 1)
        let atProxy = try await site.proxy.requests
        #expect(atProxy.allSatisfy { $0.version == "HTTP/2.0" })
        await transport.shutdown()
    }

    /// The segments in a checkpoint.
    private struct SavedSegments: Decodable {
        struct Segment: Decodable {
            var url: String?
        }
        var parts: [Segment]
    }

    /// All segments are interrupted when their shared connection breaks. Each segment resumes separately.
    @Test(arguments: [RealServer.Kind.resumableUpload, .tuspyserver])
    func resumesSegmentsAfterLostSharedConnection(kind: RealServer.Kind) async throws {
        let startedRelay = Locked<CuttingRelay?>(nil)
        let site = try await open(
            kind, streams: true, settings: ["parallelThreshold": "1000000"], AttemptOptions(segmentsPerFile: 4)
        ) { port in
            let relay = try CuttingRelay(to: port)
            startedRelay.withLock { $0 = relay }
            return Int(relay.port)
        }
        let relay = try #require(startedRelay.withLock { $0 })
        defer { relay.stop() }
        relay.cut(.fromClient, inAllAfter: 5 << 20)
        let path = try interop.file("large", size: 16 << 20 + 3)
        var upload = site.upload
        // Sends no content until the checkpoint has the URLs of all four segments. If the connection broke during the creation of a
        // segment, that segment would be created again, and the count below would be wrong.
        upload.allowance = { [upload] limit in
            let saved = upload.checkpoint(of: path).flatMap { try? JSONDecoder().decode(SavedSegments.self, from: $0.data) }
            let allExist = saved?.parts.count == 4 && saved?.parts.allSatisfy { $0.url != nil } == true
            return Allowance(bytes: allExist ? limit : 0, retryAfter: allExist ? .zero : .milliseconds(5))
        }
        let (receipt, _) = try await upload.complete(path)
        #expect(relay.connectionCount > 1)
        try site.checkContent(receipt, path, interop)
        let requests = try site.server.requests
        #expect(requests.count { $0.concat == "partial" } == 4, "no segment restarts")
        checkOffsets(requests.filter { $0.concat?.hasPrefix("final;") != true })
        await transport.shutdown()
    }

    /// The transport tries trailers only over HTTP/1.1. nginx drops them, so the transport then sends each request's checksum in a header before
    /// the content.
    @Test(arguments: [true, false], ["1.1", "2"]) func verifiesChecksums(offersTrailers: Bool, httpVersion: String) async throws {
        let site = try await open(
            streams: offersTrailers, server: "{\"checksum_algorithms\": [\"sha256\"], \"supports_checksum_trailer\": \(offersTrailers)}",
            settings: ["httpVersion": httpVersion], AttemptOptions(verification: .checksum))
        let path = try interop.file("large", size: 20 << 20)
        let receipt = try await site.upload.run(path)
        #expect(receipt.checksum?.hasPrefix("sha256:") == true)
        try site.checkContent(receipt, path, interop)
        let requests = try await site.proxy.requests
        let trials = offersTrailers && httpVersion == "1.1" ? ["PATCH"] : []
        #expect(requests.map(\.method) == ["OPTIONS", "POST"] + trials + ["PATCH", "PATCH", "PATCH"])
        #expect(requests.allSatisfy { $0.version == (httpVersion == "2" ? "HTTP/2.0" : "HTTP/1.1") })
        await transport.shutdown()
    }
}
