import CurlEngine
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportSupport

/// Request bodies that are produced while they are sent.
@Suite(.timeLimit(.minutes(10))) struct BodyStreamTests {
    @Test(arguments: [nil, 6] as [Int64?]) func sendsBytesImmediately(length: Int64?) async throws {
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        // The test writes more only after the first three bytes have arrived, so the engine must not hold them back.
        let server = try ScriptedServer { _, _ in [.read(3), .call { arrival.finish() }, .answer(204)] }
        let engine = CurlEngine()
        let stream = HTTPBodyStream()
        async let response = engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: .stream(stream, length: length)))
        try await stream.write([1, 2, 3])
        for await _ in arrived {}
        try await stream.write([4, 5])
        try await stream.write([])
        try await stream.write([6])
        stream.finish()
        #expect(try await response.status == 204)
        let sent = try await response.sent
        #expect(sent.accepted == 6)
        #expect(sent.read == 6)
        let request = try #require(server.requests.first)
        #expect(request.body == [1, 2, 3, 4, 5, 6])
        #expect(request.headers["transfer-encoding"] == (length == nil ? "chunked" : nil))
        #expect(request.headers["content-length"] == length.map { "\($0)" })
        await engine.shutdown()
        server.stop()
    }

    @Test(arguments: [1000, 65_536, 500_000]) func sendsLongStream(writeSize: Int) async throws {
        let content = TemporaryFile.content(size: 1_000_000)
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let stream = HTTPBodyStream(capacity: 100_000)
        async let response = engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: .stream(stream)))
        for start in stride(from: 0, to: content.count, by: writeSize) {
            try await stream.write(Array(content[start..<min(start + writeSize, content.count)]))
        }
        stream.finish()
        #expect(try await response.sent.accepted == 1_000_000)
        #expect(server.requests.first?.body == content)
        await engine.shutdown()
        server.stop()
    }

    /// A server can close a kept-alive connection at any time, and libcurl can't send a stream again.
    @Test func sendsStreamOverNewConnection() async throws {
        let server = try ScriptedServer { _, number in number == 0 ? [.answer(200)] : [.read(nil), .answer(204)] }
        let engine = CurlEngine()
        _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        let stream = HTTPBodyStream()
        stream.finish()
        #expect(try await engine.perform(HTTPRequest(method: "PUT", url: server.url(), body: .stream(stream))).status == 204)
        #expect(server.connectionCount == 2)
        await engine.shutdown()
        server.stop()
    }

    @Test func sendsEmptyStream() async throws {
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let stream = HTTPBodyStream()
        stream.finish()
        #expect(try await engine.perform(HTTPRequest(method: "POST", url: server.url(), body: .stream(stream))).status == 204)
        #expect(server.requests.first?.body == [])
        await engine.shutdown()
        server.stop()
    }

    @Test func writerFailsWhenRequestEnds() async throws {
        let server = try ScriptedServer { _, _ in [.read(1), .raw("HTTP/1.1 413 Scripted\r\nContent-Length: 0\r\n\r\n"), .silence] }
        let engine = CurlEngine()
        let stream = HTTPBodyStream(capacity: 1)
        async let response = engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: .stream(stream)))
        let error = await #expect(throws: CurlEngineError.self) {
            while true { try await stream.write([UInt8](repeating: 1, count: 1000)) }
        }
        #expect(error?.kind == .requestEnded)
        // After an error status, libcurl stops sending and reads the response.
        #expect(try await response.status == 413)
        await engine.shutdown()
        server.stop()
    }

    @Test func cancellationEndsWaitingRequestAndWriter() async throws {
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { _, _ in [.read(1), .call { arrival.finish() }, .silence] }
        let engine = CurlEngine()
        let stream = HTTPBodyStream()
        let request = HTTPRequest(method: "PATCH", url: server.url(), body: .stream(stream))
        let task = Task { try await engine.perform(request) }
        try await stream.write([1])
        for await _ in arrived {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let error = await #expect(throws: CurlEngineError.self) { try await stream.write([2]) }
        #expect(error?.kind == .requestEnded)
        await engine.shutdown()
        server.stop()
    }

    @Test func writerCanBeCancelled() async throws {
        let stream = HTTPBodyStream(capacity: 1)
        let (starts, hasStarted) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            hasStarted.finish()
            try await stream.write([1, 2, 3])
        }
        for await _ in starts {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func requestFailsWithErrorOfProducer() async throws {
        struct SourceBroke: Error {}
        let server = try ScriptedServer { _, _ in [.read(nil), .answer(204)] }
        let engine = CurlEngine()
        let stream = HTTPBodyStream()
        let request = HTTPRequest(method: "PATCH", url: server.url(), body: .stream(stream))
        let task = Task { try await engine.perform(request) }
        try await stream.write([1])
        stream.fail(SourceBroke())
        await #expect(throws: SourceBroke.self) { try await task.value }
        await engine.shutdown()
        server.stop()
    }

    @Test func rejectsStreamShorterThanLength() async throws {
        let server = try ScriptedServer { _, _ in [.read(nil), .answer(204)] }
        let engine = CurlEngine()
        let stream = HTTPBodyStream()
        try await stream.write([1])
        stream.finish()
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: .stream(stream, length: 2)))
        }
        #expect(error?.kind == .invalidRequest)
        await engine.shutdown()
        server.stop()
    }

    @Test func sendsStreamOnlyOnce() async throws {
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let stream = HTTPBodyStream()
        stream.finish()
        _ = try await engine.perform(HTTPRequest(method: "POST", url: server.url(), body: .stream(stream)))
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "POST", url: server.url(), body: .stream(stream)))
        }
        #expect(error?.kind == .invalidRequest)
        #expect(server.requests.count == 1)
        await engine.shutdown()
        server.stop()
    }

    @Test func pacesStreams() async throws {
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let stream = HTTPBodyStream()
        try await stream.write([UInt8](repeating: 7, count: 1000))
        stream.finish()
        let calls = Locked(0)
        let response = try await engine.perform(
            HTTPRequest(method: "PATCH", url: server.url(), body: .stream(stream)),
            pacing: { _ in
                calls.withLock { count in
                    count += 1
                    return count.isMultiple(of: 2) ? Allowance(bytes: 100) : Allowance(bytes: 0, retryAfter: .milliseconds(1))
                }
            })
        #expect(response.sent.accepted == 1000)
        #expect(calls.withLock { $0 } == 20)
        await engine.shutdown()
        server.stop()
    }
}
