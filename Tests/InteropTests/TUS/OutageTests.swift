import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTUS

/// Servers that are killed during a transfer, and then restarted.
@Suite struct OutageTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    private func startServer(
        _ name: String = "server", _ kind: RealServer.Kind = .resumableUpload, port: ReservedPort? = nil
    ) async throws -> RealServer {
        // By default, aiohttp accepts requests of up to 1 MiB.
        let options = kind == .aiohttpTUS ? "{\"client_max_size\": 100000000}" : "{}"
        return try await RealServer.start(kind, in: interop.folder.appending(path: name), port: port, options: options)
    }

    /// Starts to upload 48 MiB, and waits until the session has sent a million bytes. The upload is slow, so that a test can kill the
    /// server before the file is complete.
    private func beginSlowly(_ queue: TransferQueue) async throws -> TransferSession {
        try await queue.setRateLimit(1 << 20)
        let session = try await queue.enqueue(
            try .upload(
                [interop.file("large", size: 48 << 20)], to: "real",
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000))))
        try await queue.start()
        await session.waitUntilSent(1_000_000)
        return session
    }

    /// Ends the first request by pausing the session, and waits until the next request has sent two million bytes.
    private func sendInTwoRequests(_ session: TransferSession) async throws {
        // The pause ends the first request normally: the server stores the received bytes and reports the offset.
        #expect(try await session.pause() == .paused)
        let sent = try await session.status.statistics.bytesSent
        try await session.resume()
        await session.waitUntilSent(sent + 2_000_000)
    }

    /// Restarts a killed server, and removes the rate limit.
    ///
    /// - Parameter reopensQueue: Whether to reopen the queue first.
    private func startAgain(
        _ server: inout RealServer, _ queue: inout TransferQueue, _ session: inout TransferSession, reopensQueue: Bool
    ) async throws {
        if reopensQueue {
            let id = session.id
            await queue.shutdown()
            queue = try await interop.openQueue(server.endpoint)
            session = try await queue.session(id)
            try await queue.start()
        }
        server = try await startServer("server", .tuspyserver, port: server.reservedPort)
        try await queue.setRateLimit(nil)
    }

    /// After its restart, `tuspyserver` has stored bytes that its offset does not include, and it appends new bytes to them. A resumed file
    /// would be corrupt, so the upload must restart.
    @Test(arguments: RealServer.Kind.allCases)
    func restartsAfterServerDiesInFirstPatch(kind: RealServer.Kind) async throws {
        var server = try await startServer("server", kind)
        let queue = try await interop.openQueue(server.endpoint)
        let events = queue.events
        // The upload is so slow that the server is killed before the file is complete.
        try await queue.setRateLimit(256 << 10)
        let session = try await queue.enqueue(
            try .upload(
                [interop.file("large", size: 64 << 20)], to: "real",
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000))))
        try await queue.start()
        await session.waitUntilSent(300_000)
        server.kill()
        _ = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
        server = try await startServer("server", kind, port: server.reservedPort)
        try await queue.setRateLimit(nil)
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: server)
        #expect(try server.requests.suffix(4).map(\.method) == ["HEAD", "DELETE", "POST", "PATCH"])
        await queue.shutdown()
    }

    /// The client does not resend bytes that a response confirmed, because a correct server keeps them. The file gets a warning, because
    /// the content is damaged if the server did not keep these bytes.
    @Test(arguments: [false, true]) func warnsAfterServerDiesInLaterPatch(reopensQueue: Bool) async throws {
        var server = try await startServer("server", .tuspyserver)
        var queue = try await interop.openQueue(server.endpoint)
        let events = queue.events
        var session = try await beginSlowly(queue)
        try await sendInTwoRequests(session)
        server.kill()
        _ = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
        try await startAgain(&server, &queue, &session, reopensQueue: reopensQueue)
        #expect(try await session.value.state == .completed)
        #expect(try server.requests.count { $0.method == "POST" } == 1)
        let item = try #require(try await queue.items(of: session.id).first)
        #expect(item.warnings.count == 1 && item.warnings.first?.contains("unverified") == true, "\(item.warnings.joined())")
        // tuspyserver has stored some bytes twice. This is the damage that the warning describes.
        #expect(try server.content(of: try #require(item.remoteURL), named: "large").count > 48 << 20)
        await queue.shutdown()
    }

    /// The client ends a request by pausing the session. The server is killed before it notices the end of the request, and restarts before
    /// the session resumes, so no request fails. `tuspyserver` then has stored bytes that its offset does not include. If this happens in
    /// the first request, the file restarts. If it happens in a later request, the file gets a warning that it is unverified.
    @Test(arguments: [false, true], [false, true])
    func detectsServerThatDiesDuringPause(isLater: Bool, reopensQueue: Bool) async throws {
        var server = try await startServer("server", .tuspyserver)
        var queue = try await interop.openQueue(server.endpoint)
        var session = try await beginSlowly(queue)
        if isLater { try await sendInTwoRequests(session) }
        server.suspend()
        #expect(try await session.pause() == .paused)
        server.kill()
        try await startAgain(&server, &queue, &session, reopensQueue: reopensQueue)
        try await session.resume()
        #expect(try await session.value.state == .completed)
        let item = try #require(try await queue.items(of: session.id).first)
        let stored = try server.content(of: try #require(item.remoteURL), named: "large")
        if isLater {
            #expect(item.warnings.count == 1 && item.warnings.first?.contains("unverified") == true, "\(item.warnings.joined())")
            #expect(stored.count > 48 << 20)
        } else {
            #expect(item.warnings.isEmpty)
            #expect(try stored == interop.content(item.source))
        }
        await queue.shutdown()
    }

    /// The server is killed, and a new process accepts the next connection, so the client sees only a broken connection. `tuspyserver` then has
    /// stored bytes that its offset does not include.
    @Test(arguments: [false, true]) func warnsIfServerIsReplacedUnnoticed(isLater: Bool) async throws {
        let first = try await startServer("server", .tuspyserver)
        let relay = try CuttingRelay(to: first.port)
        defer { relay.stop() }
        let queue = try await interop.openQueue(first.endpoint(port: Int(relay.port)))
        let session = try await beginSlowly(queue)
        if isLater { try await sendInTwoRequests(session) }
        first.suspend()
        let second = try await startServer("server", .tuspyserver)
        relay.breakAll(then: .redirected(to: UInt16(second.port)))
        first.kill()
        try await queue.setRateLimit(nil)
        #expect(try await session.value.state == .completed)
        let item = try #require(try await queue.items(of: session.id).first)
        #expect(item.warnings.count == 1 && item.warnings.first?.contains("unverified") == true, "\(item.warnings.joined())")
        #expect(try second.content(of: try #require(item.remoteURL), named: "large").count > 48 << 20)
        await queue.shutdown()
    }

    /// The queue keeps the bytes of a stream until the server confirms them, so the stream can restart.
    @Test func restartsStreamAfterServerDiesInFirstPatch() async throws {
        var server = try await startServer("server", .tuspyserver)
        let queue = try await interop.openQueue(server.endpoint)
        let events = queue.events
        try await queue.setRateLimit(256 << 10)
        let content = try interop.content(interop.file("content", size: 8 << 20))
        let (stream, writer) = TransferItem.stream(as: try RemotePath("stream.bin"), bufferSize: content.count)
        let session = try await queue.enqueue(
            try .upload(items: [stream], to: "real", options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000))))
        try await writer.write(content)
        writer.finish()
        try await queue.start()
        await session.waitUntilSent(300_000)
        server.kill()
        _ = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
        server = try await startServer("server", .tuspyserver, port: server.reservedPort)
        try await queue.setRateLimit(nil)
        #expect(try await session.value.state == .completed)
        let item = try #require(try await queue.items(of: session.id).first)
        #expect(try server.content(of: try #require(item.remoteURL), named: "stream.bin") == content)
        await queue.shutdown()
    }

    @Test func resumesAfterServerDiesInPatch() async throws {
        var server = try await startServer()
        let queue = try await interop.openQueue(server.endpoint, settings: ["chunkSize": "1000000"])
        let events = queue.events
        try await queue.setRateLimit(3 << 20)
        let session = try await queue.enqueue(
            try .upload(
                [interop.file("large", size: 128 << 20)], to: "real",
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000))))
        try await queue.start()
        await session.waitUntilSent(3_500_000)
        server.kill()
        _ = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
        let before = try server.requests.count
        server = try await startServer(port: server.reservedPort)
        try await queue.setRateLimit(nil)
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: server)
        let requests = try server.requests
        checkOffsets(requests)
        #expect(requests.count { $0.method == "POST" } == 1, "the upload resumes and does not restart")
        let first = try #require(requests.dropFirst(before).first)
        #expect(first.method == "HEAD")
        // At least three chunks were confirmed before the server was killed.
        let offset = try #require(first.answeredOffset.flatMap { Int($0) })
        #expect(offset >= 3_000_000 && offset % 1_000_000 == 0)
        await queue.shutdown()
    }

    /// One request sends the whole file, so the killed server has confirmed nothing. A fallback would restart the file.
    @Test func keepsUnconfirmedBytesDespiteNextEndpoint() async throws {
        var first = try await startServer("first")
        let second = try await startServer("second")
        let account = Account("real", endpoints: [.tus(first.endpoint), .tus(second.endpoint)])
        let queue = try await interop.openQueue(account, clock: .system)
        let events = queue.events
        let session = try await beginSlowly(queue)
        await session.waitUntilSent(3_000_000)
        first.kill()
        for await event in events {
            if case .attemptFailed = event.kind { break }
        }
        first = try await startServer("first", port: first.reservedPort)
        try await queue.setRateLimit(nil)
        #expect(try await session.value.state == .completed)
        #expect(try second.requests.isEmpty)
        // A killed server may have lost the bytes, so the transport requests the server's offset.
        #expect(try first.requests.contains { $0.method == "HEAD" })
        try await interop.checkContent(of: session, on: first)
        await queue.shutdown()
    }

    @Test func fallsBackAndReturnsToFirstEndpoint() async throws {
        var first = try await startServer("first")
        let second = try await startServer("second")
        // If a server can't be reached, the circuit breaker blocks it for at least 10 s after each failed probe.
        let passed = Locked(Duration.zero)
        var clock = EngineClock.system
        clock.now = { EngineClock.system.now() + passed.withLock { $0 } }
        let account = Account("real", endpoints: [.tus(first.endpoint), .tus(second.endpoint)], fallbackAfter: .zero)
        let queue = try await interop.openQueue(account, clock: clock)
        let events = queue.events
        let retry = RetryPolicy(maximumAttempts: 100_000)
        let size = 300_000
        func request(_ name: String) throws -> SessionRequest {
            try .upload(
                (0..<50).map { try interop.file("\(name)-\($0)", size: size + $0) }, to: "real", options: SessionOptions(retry: retry))
        }
        let session = try await queue.enqueue(try request("file"))
        try await queue.start()
        var done: Set<Int64> = []
        for await event in events {
            if case .itemCompleted(_, let position, _) = event.kind { done.insert(position) }
            if done.count == 10 { break }
        }
        first.kill()
        #expect(try await session.value.statistics.filesDone == 50)
        let items = try await queue.items(of: session.id)
        let atFirst = Set(items.filter { $0.remoteURL?.hasPrefix(first.endpoint) == true }.map(\.position))
        #expect(done.isSubset(of: atFirst), "complete files stay on the first server")
        #expect(atFirst.count < 50)
        for item in items {
            let server = atFirst.contains(item.position) ? first : second
            let url = try #require(item.remoteURL)
            #expect(try server.content(of: url, named: "") == (try interop.content(item.source)))
        }
        // Each file is created once, except the files that were in flight when the server was killed: these may be created on both servers.
        let atBoth = try first.requests.count { $0.method == "POST" } + second.requests.count { $0.method == "POST" }
        #expect(atBoth <= 50 + 50 - done.count)
        #expect(try second.requests.count { $0.method == "POST" } == 50 - atFirst.count)

        first = try await startServer("first", port: first.reservedPort)
        passed.withLock { $0 = .seconds(3_600) }
        let before = try (first.requests.count, second.requests.count)
        let later = try await queue.enqueue(try request("later"))
        #expect(try await later.value.statistics.filesDone == 50)
        try await interop.checkContent(of: later, on: first)
        #expect(try second.requests.count == before.1, "the first endpoint is preferred again")
        #expect(try first.requests.dropFirst(before.0).count { $0.method == "POST" } == 50)
        await queue.shutdown()
    }
}
