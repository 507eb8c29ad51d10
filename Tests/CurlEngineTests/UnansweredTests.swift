import CurlEngine
import ScriptedHTTP
import Testing
import TransferCore
import TransportSupport

/// Connections that are accepted, and then closed or reset without a byte from the server, for example by a forwarder whose server is stopped.
@Suite struct UnansweredTests {
    private func failure(
        _ method: String = "PUT", body: HTTPBody = .bytes([1, 2, 3]), at url: String, on engine: CurlEngine = CurlEngine()
    )
        async throws -> CurlEngineError
    {
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: method, url: url, body: body))
        }
        await engine.shutdown()
        return try #require(error)
    }

    /// The server closes the connection after `limit` bytes of the request's head. Unread bytes make the kernel reset the connection.
    @Test(arguments: [0, 1, 10], ["GET", "POST", "PUT"]) func reportsConnectionClosedDuringHead(limit: Int, method: String) async throws {
        let server = try ScriptedServer(headLimit: { _ in limit }) { _, _ in [.silence] }
        defer { server.stop() }
        let error = try await failure(method, body: method == "GET" ? .none : .bytes([1, 2, 3]), at: server.url())
        #expect(error.kind == .connectionLost && error.isUnanswered, "\(error)")
    }

    @Test(arguments: [ServerStep.close, .reset]) func reportsConnectionClosedAfterRequest(end: ServerStep) async throws {
        let server = try ScriptedServer { _, _ in [.read(nil), end] }
        defer { server.stop() }
        let error = try await failure(at: server.url())
        #expect(error.kind == .connectionLost && error.isUnanswered, "\(error)")
    }

    /// Each of these servers has sent at least a line, so it is not a forwarder whose server is stopped.
    @Test(
        arguments: [
            [[.raw("HTTP/1.1 100 Continue\r\n\r\n"), .close]], [[.raw("HTTP/1.1 200 OK\r\n"), .reset]],
            [[.raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1234"), .close]],
        ] as [[[ServerStep]]]) func connectionWithResponseIsNotUnanswered(answers: [[ServerStep]]) async throws
    {
        let server = try ScriptedServer(answers: answers)
        defer { server.stop() }
        let error = try await failure(at: server.url())
        #expect(!error.isUnanswered, "\(error)")
    }

    @Test func reusedConnectionIsNotUnanswered() async throws {
        let server = try ScriptedServer { _, number in number == 0 ? [.answer(200)] : [.read(nil), .reset] }
        defer { server.stop() }
        let engine = CurlEngine()
        _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        let error = try await failure("POST", at: server.url(), on: engine)
        #expect([.outcomeUnknown, .connectionLost].contains(error.kind) && !error.isUnanswered, "\(error)")
    }

    /// A forwarder can't buffer this many bytes, so its server received some of them.
    @Test func connectionThatAcceptedLargeBodyIsNotUnanswered() async throws {
        let server = try ScriptedServer { _, _ in [.skip(50_000_000), .reset] }
        defer { server.stop() }
        let file = try TemporaryFile(size: 60_000_000)
        let reader = try await FileReader.open(file.source, on: WorkerThreads(limit: 1))
        let error = try await failure(body: .file(reader, offset: 0, length: 60_000_000), at: server.url())
        #expect(error.kind == .connectionLost && !error.isUnanswered, "\(error)")
    }

    /// The server closes the connection during the TLS handshake, before it sends a byte.
    @Test(arguments: [0, 5]) func reportsCutHandshake(limit: Int) async throws {
        let server = try ScriptedServer(headLimit: { _ in limit }) { _, _ in [.silence] }
        defer { server.stop() }
        let error = try await failure(at: "https://127.0.0.1:\(server.port)/")
        #expect(error.kind == .tlsFailed && error.isUnanswered, "\(error)")
        #expect(error.sent.read == 0)
    }

    @Test func refusedHandshakeIsNotUnanswered() async throws {
        let server = try await TLSServer.start(version: "TLSv1_1")
        defer { server.stop() }
        let error = try await failure(at: server.url)
        #expect(error.kind == .tlsFailed && !error.isUnanswered, "\(error)")
    }
}
