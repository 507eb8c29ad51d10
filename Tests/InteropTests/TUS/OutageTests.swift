import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTUS

/// Servers that die during a transfer, and restart.
@Suite struct OutageTests {
    private let workshop: Workshop

    init() throws {
        workshop = try Workshop()
    }

    private func startServer(
        _ name: String = "server", _ kind: RealServer.Kind = .resumableUpload, port: ReservedPort? = nil
    ) async throws -> RealServer {
        // By default, aiohttp accepts requests of up to 1 MiB.
        let options = kind == .aiohttpTUS ? "{\"client_max_size\": 100000000}" : "{}"
        return try await RealServer.start(kind, in: workshop.folder.appending(path: name), port: port, options: options)
    }

    /// Uploads 48 MiB so slowly that the server is killed before the file is complete.
    private func beginSlowly(_ queue: TransferQueue) async throws -> TransferSession {
        try await queue.setRateLimit(1 << 20)
        let session = try await queue.enqueue(
            try .upload(
                [workshop.file("large", size: 48 << 20)], to: "real",
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000))))
        try await queue.start()
        await session.waitUntilSent(1_000_000)
        return session
    }

    /// Ends the first request with a pause, and waits until the next one has sent two million bytes.
    private func sendInTwoRequests(_ session: TransferSession) async throws {
        // The first request ends normally: the server stores the received bytes and reports the offset.
        #expect(try await session.pause() == .paused)
        let sent = try await session.status.statistics.bytesSent
        try await session.resume()
        await session.waitUntilSent(sent + 2_000_000)
    }

    /// Restarts a killed server, without a rate limit.
    ///
    /// - Parameter restarts: Whether to reopen the queue first.
    private func startAgain(
        _ server: inout RealServer, _ queue: inout TransferQueue, _ session: inout TransferSession, restarts: Bool
    ) async throws {
        if restarts {
            let id = session.id
            await queue.shutdown()
            queue = try await workshop.openQueue(server.endpoint)
            session = try await queue.session(id)
            try await queue.start()
        }
        server = try await startServer("server", .tuspyserver, port: server.reservedPort)
        try await queue.setRateLimit(nil)
    }

    /// After its restart, `tuspyserver` has bytes that it does not count, and appends new ones to them.
    @Test(arguments: RealServer.Kind.allCases)
    func restartsAfterServerDiesInFirstPatch(kind: RealServer.Kind) async throws {
        var server = try await startServer("server", kind)
        let queue = try await workshop.openQueue(server.endpoint)
        let events = queue.events
        // So slow that the server is killed before the file is complete.
        try await queue.setRateLimit(256 << 10)
        let session = try await queue.enqueue(
            try .upload(
                [workshop.file("large", size: 64 << 20)], to: "real",
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000))))
        try await queue.start()
        await session.waitUntilSent(300_000)
        server.kill()
        _ = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
        server = try await startServer("server", kind, port: server.reservedPort)
        try await queue.setRateLimit(nil)
        #expect(try await session.value.state == .completed)
        try await workshop.checkContent(of: session, on: server)
        #expect(try server.requests.suffix(4).map(\.method) == ["HEAD", "DELETE", "POST", "PATCH"])
        await queue.shutdown()
    }

    /// Bytes that a response confirmed are not sent again, because correct servers keep them. The file gets a warning about servers that do
    /// not.
    @Test(arguments: [false, true]) func warnsAfterServerDiesInLaterPatch(restarts: Bool) async throws {
        var server = try await startServer("server", .tuspyserver)
        var queue = try await workshop.openQueue(server.endpoint)
        let events = queue.events
        var session = try await beginSlowly(queue)
        try await sendInTwoRequests(session)
        server.kill()
        _ = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
        try await startAgain(&server, &queue, &session, restarts: restarts)
        #expect(try await session.value.state == .completed)
        #expect(try server.requests.count { $0.method == "POST" } == 1)
        let item = try #require(try await queue.items(of: session.id).first)
        #expect(item.warnings.count == 1 && item.warnings.first?.contains("may have failed") == true, "\(item.warnings.joined())")
        // The damage that the warning describes. A version of tuspyserver without it needs no warning.
        #expect(try server.content(of: try #require(item.remoteURL), named: "large").count > 48 << 20)
        await queue.shutdown()
    }

    /// The server is killed before it sees the pause, and restarts before the session resumes, so that no request fails. `tuspyserver` then
    /// has bytes that it does not count. A first request restarts the file; after a later one, the file is reported as unverified.
    @Test(arguments: [false, true], [false, true])
    func distrustsServerThatDiesDuringPause(isLater: Bool, restarts: Bool) async throws {
        var server = try await startServer("server", .tuspyserver)
        var queue = try await workshop.openQueue(server.endpoint)
        var session = try await beginSlowly(queue)
        if isLater { try await sendInTwoRequests(session) }
        server.suspend()
        #expect(try await session.pause() == .paused)
        server.kill()
        try await startAgain(&server, &queue, &session, restarts: restarts)
        try await session.resume()
        #expect(try await session.value.state == .completed)
        let item = try #require(try await queue.items(of: session.id).first)
        let stored = try server.content(of: try #require(item.remoteURL), named: "large")
        if isLater {
            #expect(item.warnings.count == 1 && item.warnings.first?.contains("unverified") == true, "\(item.warnings.joined())")
            #expect(stored.count > 48 << 20)
        } else {
            #expect(item.warnings.isEmpty)
            #expect(try stored == workshop.content(item.source))
        }
        await queue.shutdown()
    }

    /// A stream, whose bytes are kept until the server confirms them.
    @Test func restartsStreamAfterServerDiesInFirstPatch() async throws {
        var server = try await startServer("server", .tuspyserver)
        let queue = try await workshop.openQueue(server.endpoint)
        let events = queue.events
        try await queue.setRateLimit(256 << 10)
        let content = try workshop.content(workshop.file("content", size: 8 << 20))
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
        let queue = try await workshop.openQueue(server.endpoint, settings: ["chunkSize": "1000000"])
        let events = queue.events
        try await queue.setRateLimit(3 << 20)
        let session = try await queue.enqueue(
            try .upload(
                [workshop.file("large", size: 128 << 20)], to: "real",
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100_000))))
        try await queue.start()
        await session.waitUntilSent(3_500_000)
        server.kill()
        _ = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
        let before = try server.requests.count
        server = try await startServer(port: server.reservedPort)
        try await queue.setRateLimit(nil)
        #expect(try await session.value.state == .completed)
        try await workshop.checkContent(of: session, on: server)
        let requests = try server.requests
        checkOffsets(requests)
        #expect(requests.count { $0.method == "POST" } == 1, "the upload resumes and does not restart")
        let first = try #require(requests.dropFirst(before).first)
        #expect(first.method == "HEAD")
        // At least three chunks were confirmed before.
        let offset = try #require(first.answeredOffset.flatMap { Int($0) })
        #expect(offset >= 3_000_000 && offset % 1_000_000 == 0)
        await queue.shutdown()
    }

    @Test func fallsBackAndReturnsToFirstEndpoint() async throws {
        var first = try await startServer("first")
        let second = try await startServer("second")
        // A breaker blocks a dead server for 30 s, and longer after each failed probe.
        let passed = Locked(Duration.zero)
        var clock = EngineClock.system
        clock.now = { EngineClock.system.now() + passed.withLock { $0 } }
        let account = Account("real", endpoints: [.tus(first.endpoint), .tus(second.endpoint)], fallbackAfter: .zero)
        let queue = try await workshop.openQueue(account, clock: clock)
        let events = queue.events
        let retry = RetryPolicy(maximumAttempts: 100_000)
        let size = 300_000
        func batch(_ name: String) throws -> SessionRequest {
            try .upload(
                (0..<50).map { try workshop.file("\(name)-\($0)", size: size + $0) }, to: "real", options: SessionOptions(retry: retry))
        }
        let session = try await queue.enqueue(try batch("file"))
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
        #expect(done.isSubset(of: atFirst), "complete files stay where they are")
        #expect(atFirst.count < 50)
        for item in items {
            let server = atFirst.contains(item.position) ? first : second
            let url = try #require(item.remoteURL)
            #expect(try server.content(of: url, named: "") == (try workshop.content(item.source)))
        }
        // Each file is created once, except those that were in flight.
        let atBoth = try first.requests.count { $0.method == "POST" } + second.requests.count { $0.method == "POST" }
        #expect(atBoth <= 50 + 6)
        #expect(try second.requests.count { $0.method == "POST" } == 50 - atFirst.count)

        first = try await startServer("first", port: first.reservedPort)
        passed.withLock { $0 = .seconds(3_600) }
        let before = try (first.requests.count, second.requests.count)
        let later = try await queue.enqueue(try batch("later"))
        #expect(try await later.value.statistics.filesDone == 50)
        try await workshop.checkContent(of: later, on: first)
        #expect(try second.requests.count == before.1, "the first endpoint is preferred again")
        #expect(try first.requests.dropFirst(before.0).count { $0.method == "POST" } == 50)
        await queue.shutdown()
    }
}
