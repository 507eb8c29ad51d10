import CurlEngine
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportSupport

@Suite struct FailureTests {
    private func failure(of request: HTTPRequest, on engine: CurlEngine = CurlEngine()) async throws -> CurlEngineError {
        let error = await #expect(throws: CurlEngineError.self) { try await engine.perform(request) }
        await engine.shutdown()
        return try #require(error)
    }

    @Test func reportsRefusedConnection() async throws {
        let closed = try ReservedPort()
        #expect(try await failure(of: HTTPRequest(method: "GET", url: closed.url())).kind == .refused)
    }

    @Test(arguments: ["", "not a url", "ftp://127.0.0.1/", "http://user:secret@127.0.0.1:1/", "http://127.0.0.1/\r\nX: 1", "http://"])
    func rejectsInvalidURLs(url: String) async throws {
        let error = try await failure(of: HTTPRequest(method: "GET", url: url))
        #expect(error.kind == .invalidRequest || error.kind == .invalidResponse)
        #expect(!error.description.contains("secret"))
    }

    @Test(
        arguments: [
            ("X-A", "1\r\nX-B: 2"), ("X-A", "1\n2"), ("X-A", "a\u{0}b"), ("X-A\r\nX-B", "1"), ("X A", "1"), ("X:A", "1"), ("", "1"),
            ("X-Ä", "1"),
        ])
    func rejectsInvalidHeaders(name: String, value: String) async throws {
        let server = try ScriptedServer { _, _ in [.answer(200)] }
        let error = try await failure(of: HTTPRequest(method: "GET", url: server.url(), headers: [name: value]))
        #expect(error.kind == .invalidRequest)
        #expect(server.requests.isEmpty)
        server.stop()
    }

    @Test(arguments: ["GET / HTTP/1.1\r\nX", "", "GET\n"]) func rejectsInvalidMethods(method: String) async throws {
        let error = try await failure(of: HTTPRequest(method: method, url: "http://127.0.0.1:1/"))
        #expect(error.kind == .invalidRequest)
    }

    @Test(
        arguments: [
            [ServerStep.close], [.reset], [.raw("HTTP/1.1 20"), .close], [.raw("HTTP/1.1 200 OK\r\nX-"), .close],
            [.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"), .close],
            [.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"), .reset],
        ])
    func reportsIncompleteResponses(steps: [ServerStep]) async throws {
        let server = try ScriptedServer { _, _ in [.read(nil)] + steps }
        let error = try await failure(of: HTTPRequest(method: "PATCH", url: server.url(), body: .bytes([1, 2, 3])))
        #expect([.connectionLost, .invalidResponse].contains(error.kind), "\(error)")
        #expect(error.sent.read == 3)
        #expect(server.requests.count == 1)
        server.stop()
    }

    @Test(arguments: ["SSH-2.0-OpenSSH_9.2\r\n", "\u{16}\u{3}\u{1}\r\n\r\n"]) func rejectsOtherProtocols(greeting: String) async throws {
        let server = try ScriptedServer { _, _ in [.raw(greeting), .close] }
        #expect(try await failure(of: HTTPRequest(method: "GET", url: server.url())).kind == .invalidResponse)
        server.stop()
    }

    @Test func limitsTotalSizeOfHeaders() async throws {
        let line = "X-Padding: \(String(repeating: "x", count: 1000))\r\n"
        let server = try ScriptedServer { _, _ in [.raw("HTTP/1.1 200 OK\r\n"), .raw(String(repeating: line, count: 400)), .silence] }
        #expect(try await failure(of: HTTPRequest(method: "GET", url: server.url())).kind == .invalidResponse)
        server.stop()
    }

    @Test func limitsLengthOfHeader() async throws {
        let server = try ScriptedServer { _, _ in
            [.raw("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 200_000))\r\n\r\n"), .silence]
        }
        #expect(try await failure(of: HTTPRequest(method: "GET", url: server.url())).kind == .invalidResponse)
        server.stop()
    }

    /// If a server closes a reused connection, libcurl by default sends the request again, and the server might handle it twice.
    @Test(arguments: ["POST", "PATCH", "PUT"], [0, 1, 1_000_000])
    func doesNotRepeatRequestOnClosedConnection(method: String, size: Int) async throws {
        let body = TemporaryFile.content(size: size)
        let server = try ScriptedServer { _, number in number == 0 ? [.answer(200)] : [.read(nil), .close] }
        let engine = CurlEngine()
        _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        let error = try await failure(of: HTTPRequest(method: method, url: server.url(), body: .bytes(body)), on: engine)
        #expect(error.kind == .outcomeUnknown)
        #expect(server.requests.count == 2)
        server.stop()
    }

    /// Uses bodies that libcurl can't send again. The connection breaks before, within or after the body.
    @Test(arguments: [0, 1000, 100_000], [ServerStep.close, .reset])
    func doesNotRepeatBodyOnBrokenConnection(read: Int, end: ServerStep) async throws {
        let server = try ScriptedServer { _, number in number == 0 ? [.answer(200)] : [.read(read), end] }
        let engine = CurlEngine()
        _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        let file = try TemporaryFile(size: 100_000)
        let reader = try await FileReader.open(file.source, on: WorkerThreads(limit: 1))
        let request = HTTPRequest(method: "PATCH", url: server.url(), body: .file(reader, offset: 0, length: 100_000))
        let error = try await failure(of: request, on: engine)
        #expect([.outcomeUnknown, .connectionLost].contains(error.kind))
        // If the server does not read the body, it may reset the connection before libcurl sends any of the body.
        #expect(read == 0 || error.sent.read > 0)
        #expect(server.requests.count == 2)
        server.stop()
    }

    /// libcurl retries the request on a new connection, which is refused. The error must still report that the outcome of the first request is
    /// unknown.
    @Test(arguments: ["POST", "PATCH", "PUT"]) func outcomeIsUnknownIfServerStops(method: String) async throws {
        let stoppingServer = Locked<ScriptedServer?>(nil)
        let server = try ScriptedServer { _, number in
            number == 0 ? [.answer(200)] : [.read(1000), .call { stoppingServer.withLock { $0 }?.stop() }, .reset]
        }
        stoppingServer.withLock { $0 = server }
        let engine = CurlEngine()
        _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        let request = HTTPRequest(method: method, url: server.url(), body: .bytes(TemporaryFile.content(size: 1000)))
        let error = try await failure(of: request, on: engine)
        #expect(error.kind == .outcomeUnknown && error.wasServerGone && error.sent.read > 0, "\(error)")
        let next = try await failure(of: request, on: CurlEngine())
        #expect(next.kind == .refused && next.sent.read == 0, "no byte of this request was sent")
    }

    @Test func repeatsSafeRequestOnClosedConnection() async throws {
        let server = try ScriptedServer { _, number in number == 1 ? [.close] : [.answer(200)] }
        let engine = CurlEngine()
        for _ in 0..<2 {
            #expect(try await engine.perform(HTTPRequest(method: "HEAD", url: server.url())).status == 200)
        }
        #expect(server.requests.count == 3)
        await engine.shutdown()
        server.stop()
    }

    @Test func detectsShrunkFile() async throws {
        let file = try TemporaryFile(size: 100_000)
        let source = try file.source
        let reader = try await FileReader.open(source, on: WorkerThreads(limit: 1))
        try file.write([1, 2, 3])
        let server = try ScriptedServer { _, _ in [.read(nil), .answer(204)] }
        let engine = CurlEngine()
        let error = await #expect(throws: TransferError.self) {
            try await engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: .file(reader, offset: 0, length: source.size)))
        }
        #expect(error?.failureClass == .sourceChanged)
        await engine.shutdown()
        server.stop()
    }

    @Test func rejectsRequestsAfterShutdown() async throws {
        let engine = CurlEngine()
        await engine.shutdown()
        #expect(try await failure(of: HTTPRequest(method: "GET", url: "http://127.0.0.1:1/"), on: engine).kind == .shutDown)
    }

    @Test func shutdownEndsRequests() async throws {
        let engine = CurlEngine()
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { _, _ in [.call { arrival.finish() }, .silence] }
        let request = HTTPRequest(method: "GET", url: server.url())
        let task = Task { try await engine.perform(request) }
        for await _ in arrived {}
        await engine.shutdown()
        let error = await #expect(throws: CurlEngineError.self) { try await task.value }
        #expect(error?.kind == .shutDown)
        server.stop()
    }
}
