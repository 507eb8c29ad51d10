import CurlEngine
import ScriptedHTTP
import Testing
import TransferCore
import TransportSupport

/// Verifies that cancellation ends a request in any state, and does not affect other requests. If a cancellation has no effect, most tests
/// hang, because no response ends the request.
@Suite(.timeLimit(.minutes(10))) struct CancellationTests {
    @Test func cancelsRequestToSilentServer() async throws {
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { _, _ in [.read(nil), .call { arrival.finish() }, .silence] }
        let engine = CurlEngine()
        let task = Task { try await engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: .bytes([1]))) }
        for await _ in arrived {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await engine.shutdown()
        server.stop()
    }

    @Test func requestCanBeCancelledWhilePaced() async throws {
        let server = try ScriptedServer { _, _ in [.read(nil), .answer(204)] }
        let engine = CurlEngine()
        let (paced, firstCall) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await engine.perform(
                HTTPRequest(method: "PATCH", url: server.url(), body: .bytes([1])),
                pacing: { _ in
                    firstCall.finish()
                    return Allowance(bytes: 0, retryAfter: .seconds(3600))
                })
        }
        for await _ in paced {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await engine.shutdown()
        server.stop()
    }

    @Test func cancelledTaskSendsNoRequest() async throws {
        let server = try ScriptedServer { _, _ in [.answer(200)] }
        let engine = CurlEngine()
        let task = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(server.requests.isEmpty)
        await engine.shutdown()
        server.stop()
    }

    @Test func cancelsSomeOfManyRequests() async throws {
        let server = try ScriptedServer { request, _ in request.path == "/silent" ? [.silence] : [.answer(200)] }
        let engine = CurlEngine()
        let tasks = (0..<50).map { _ in Task { try await engine.perform(HTTPRequest(method: "GET", url: server.url("/silent"))) } }
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url())).status == 200)
        for task in tasks { task.cancel() }
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url())).status == 200)
        for task in tasks {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        await engine.shutdown()
        server.stop()
    }
}
