import CurlEngine
import Dispatch
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportSupport

/// Trailers of requests, which can be computed from the body while it is sent.
@Suite(.timeLimit(.minutes(10))) struct TrailerTests {
    /// A simple checksum that depends on the order of bytes.
    private static func checksum(_ bytes: some Sequence<UInt8>, after start: UInt64 = 0) -> UInt64 {
        bytes.reduce(start) { $0 &* 31 &+ UInt64($1) }
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 1_000_000]) func sendsChecksumAfterFile(size: Int) async throws {
        let file = try TemporaryFile(size: size)
        let reader = try await FileReader.open(file.source, on: WorkerThreads(limit: 1))
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let sum = Locked<UInt64>(0)
        let request = HTTPRequest(
            method: "PATCH", url: server.url(), headers: ["Trailer": "X-Checksum"],
            body: .file(reader, offset: 0, length: Int64(size)),
            trailers: { ["X-Checksum": "\(sum.withLock { $0 })"] },
            observeBody: { span in
                sum.withLock { sum in unsafe span.withUnsafeBytes { sum = unsafe Self.checksum($0, after: sum) } }
            })
        let response = try await engine.perform(request)
        #expect(response.sent.accepted == Int64(size))
        let received = try #require(server.requests.first)
        #expect(received.headers["transfer-encoding"] == "chunked")
        #expect(received.headers["content-length"] == nil)
        #expect(received.body == TemporaryFile.content(size: size))
        #expect(received.trailers == ["x-checksum": "\(Self.checksum(TemporaryFile.content(size: size)))"])
        // The connection is still usable.
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url())).status == 204)
        #expect(server.connectionCount == 1)
        await engine.shutdown()
        server.stop()
    }

    @Test func sendsTrailersOfSeveralRequests() async throws {
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        for number in 0..<5 {
            let request = HTTPRequest(
                method: "PATCH", url: server.url(), headers: ["Trailer": "X-Number"], body: .bytes([1, 2, 3]),
                trailers: { ["X-Number": "\(number)"] })
            #expect(try await engine.perform(request).status == 204)
            #expect(try await engine.perform(HTTPRequest(method: "HEAD", url: server.url())).status == 204)
        }
        #expect(server.requests.compactMap { $0.trailers["x-number"] } == ["0", "1", "2", "3", "4"])
        #expect(server.connectionCount == 1)
        await engine.shutdown()
        server.stop()
    }

    @Test func observerReceivesExactlyTheBody() async throws {
        let size = 1_000_000
        let file = try TemporaryFile(size: size)
        let reader = try await FileReader.open(file.source, on: WorkerThreads(limit: 1))
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let seen = Locked<[UInt8]>([])
        _ = try await engine.perform(
            HTTPRequest(
                method: "PUT", url: server.url(), body: .file(reader, offset: 1, length: 700_000),
                observeBody: { span in seen.withLock { seen in unsafe span.withUnsafeBytes { unsafe seen += $0 } } }))
        let content = Array(TemporaryFile.content(size: size)[1...700_000])
        #expect(seen.withLock { $0 } == content)
        #expect(server.requests.first?.body == content)
        await engine.shutdown()
        server.stop()
    }

    @Test func slowObserverDoesNotDelayOtherRequests() async throws {
        let file = try TemporaryFile(size: 100_000)
        let reader = try await FileReader.open(file.source, on: WorkerThreads(limit: 1))
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let gate = DispatchSemaphore(value: 0)
        let (starts, hasStarted) = AsyncStream.makeStream(of: Void.self)
        let request = HTTPRequest(
            method: "PUT", url: server.url(), body: .file(reader, offset: 0, length: 100_000),
            observeBody: { _ in
                hasStarted.finish()
                gate.wait()
            })
        let slow = Task { try await engine.perform(request) }
        for await _ in starts {}
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url())).status == 204)
        gate.signal()
        #expect(try await slow.value.sent.accepted == 100_000)
        await engine.shutdown()
        server.stop()
    }

    @Test func rejectsObserverOfBytes() async throws {
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "PUT", url: server.url(), body: .bytes([1]), observeBody: { _ in }))
        }
        #expect(error?.kind == .invalidRequest)
        #expect(server.requests.isEmpty)
        await engine.shutdown()
        server.stop()
    }

    @Test func requestFailsIfTrailersAreInvalid() async throws {
        struct NoChecksum: Error {}
        let server = try ScriptedServer { _, _ in [.read(nil), .answer(204)] }
        let engine = CurlEngine()
        await #expect(throws: NoChecksum.self) {
            try await engine.perform(
                HTTPRequest(method: "PATCH", url: server.url(), body: .bytes([1]), trailers: { throw NoChecksum() }))
        }
        let smuggled = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(
                HTTPRequest(method: "PATCH", url: server.url(), body: .bytes([1]), trailers: { ["X-A": "1\r\n\r\nGET / HTTP/1.1"] }))
        }
        #expect(smuggled?.kind == .invalidRequest)
        let bodiless = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url(), trailers: { [:] }))
        }
        #expect(bodiless?.kind == .invalidRequest)
        await engine.shutdown()
        server.stop()
    }

    @Test func separatesTrailersFromHeaders() async throws {
        let server = try ScriptedServer { _, _ in
            [.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n3\r\nabc\r\n0\r\nX-Late: 1\r\n\r\n")]
        }
        let engine = CurlEngine()
        let response = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        #expect(response.body == Array("abc".utf8))
        #expect(response.headers["X-Late"] == nil)
        await engine.shutdown()
        server.stop()
    }
}
