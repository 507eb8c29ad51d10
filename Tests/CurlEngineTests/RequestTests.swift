import CurlEngine
import Dispatch
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportSupport

/// Successful requests and their responses.
@Suite struct RequestTests {
    @Test func sendsHeadersAndBody() async throws {
        let server = try ScriptedServer(answers: [[.answer(201, ["Location": "/files/1"], body: "made")]])
        let engine = CurlEngine()
        let response = try await engine.perform(
            HTTPRequest(method: "POST", url: server.url(), headers: ["X-Name": "a b", "X-Empty": ""], body: .bytes([1, 2, 3])))
        #expect(response.status == 201)
        #expect(response.headers["location"] == "/files/1")
        #expect(response.body == Array("made".utf8))
        #expect(response.effectiveURL == server.url())
        #expect(response.sent.accepted == 3)
        let request = try #require(server.requests.first)
        #expect(request.method == "POST")
        #expect(request.path == "/files/")
        #expect(request.headers["x-name"] == "a b")
        #expect(request.headers["x-empty"] == "")
        #expect(request.headers["expect"] == nil)
        #expect(request.headers["content-length"] == "3")
        #expect(request.body == [1, 2, 3])
        await engine.shutdown()
        server.stop()
    }

    @Test(arguments: ["GET", "OPTIONS", "DELETE", "HEAD"]) func sendsRequestsWithoutBody(method: String) async throws {
        let server = try ScriptedServer(answers: [[.answer(200, ["Upload-Offset": "7"], body: "text")]])
        let engine = CurlEngine()
        let response = try await engine.perform(HTTPRequest(method: method, url: server.url()))
        #expect(response.headers["Upload-Offset"] == "7")
        #expect(response.body == Array((method == "HEAD" ? "" : "text").utf8))
        #expect(server.requests.first?.method == method)
        #expect(server.requests.first?.headers["content-length"] == nil)
        await engine.shutdown()
        server.stop()
    }

    @Test func sendsLengthOfEmptyBody() async throws {
        let server = try ScriptedServer(answers: [[.answer(200)]])
        let engine = CurlEngine()
        _ = try await engine.perform(HTTPRequest(method: "POST", url: server.url(), body: .bytes([])))
        #expect(server.requests.first?.headers["content-length"] == "0")
        await engine.shutdown()
        server.stop()
    }

    @Test(arguments: [(0, 300_000), (1, 299_999), (299_999, 1), (100, 65_536)])
    func sendsRangeOfFile(offset: Int, length: Int) async throws {
        let file = try TemporaryFile(size: 300_000)
        let server = try ScriptedServer(answers: [[.answer(204)]])
        let engine = CurlEngine()
        let reader = try await FileReader.open(file.source, on: WorkerThreads(limit: 1))
        let progress = Locked<[Int64]>([])
        let response = try await engine.perform(
            HTTPRequest(method: "PATCH", url: server.url(), body: .file(reader, offset: Int64(offset), length: Int64(length))),
            progress: { sent in progress.withLock { $0.append(sent) } })
        #expect(response.sent.accepted == Int64(length))
        #expect(server.requests.first?.body == Array(TemporaryFile.content(size: 300_000)[offset..<offset + length]))
        let reports = progress.withLock { $0 }
        #expect(reports == reports.sorted())
        #expect(reports.last == Int64(length))
        await engine.shutdown()
        server.stop()
    }

    /// A server that ignores `Expect: 100-continue` still gets the body.
    @Test func sendsBodyWithoutInterimResponse() async throws {
        let server = try ScriptedServer(answers: [[.answer(200)]])
        let engine = CurlEngine()
        _ = try await engine.perform(HTTPRequest(method: "POST", url: server.url(), body: .bytes([5]), expectsContinue: true))
        #expect(server.requests.first?.headers["expect"] == "100-continue")
        #expect(server.requests.first?.body == [5])
        await engine.shutdown()
        server.stop()
    }

    @Test func ignoresHeadersOfInterimResponses() async throws {
        let server = try ScriptedServer(answers: [
            [.raw("HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"), .answer(200, ["X-Final": "1"])]
        ])
        let engine = CurlEngine()
        let response = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        #expect(response.headers["X-Early"] == nil)
        #expect(response.headers["X-Final"] == "1")
        await engine.shutdown()
        server.stop()
    }

    /// The observer receives interim responses while the body is being sent. After each one, the server waits for the observer before it continues.
    @Test func observesInterimResponsesDuringBody() async throws {
        let isObserved = DispatchSemaphore(value: 0)
        let size = 32 << 20
        let server = try ScriptedServer(answers: [
            [
                .raw("HTTP/1.1 100 Continue\r\n\r\n"), .raw("HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /up/1\r\n\r\n"),
                .read(1000), .call { isObserved.wait() }, .raw("HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 1000\r\n\r\n"),
                .call { isObserved.wait() }, .answer(200),
            ]
        ])
        let engine = CurlEngine()
        let heads = Locked<[String]>([])
        var request = HTTPRequest(
            method: "POST", url: server.url(), body: .bytes([UInt8](repeating: 1, count: size)), expectsContinue: true)
        request.observeInterimResponse = { head in
            heads.withLock { $0.append("\(head.status) \(head.headers["Location"] ?? head.headers["Upload-Offset"] ?? "")") }
            isObserved.signal()
        }
        #expect(try await engine.perform(request).status == 200)
        #expect(heads.withLock { $0 } == ["104 /up/1", "104 1000"])
        await engine.shutdown()
        server.stop()
    }

    /// The limit on header bytes applies to each response, rather than to all interim responses together.
    @Test func acceptsManyInterimResponses() async throws {
        let interim = "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 1\r\n\r\n"
        let server = try ScriptedServer(answers: [
            [.raw(String(repeating: interim, count: 2000)), .answer(200, ["X-Final": "1"])]
        ])
        var configuration = CurlEngine.Configuration()
        configuration.maximumResponseHeaders = 1000
        let engine = CurlEngine(configuration: configuration)
        let count = Locked(0)
        var request = HTTPRequest(method: "POST", url: server.url(), body: .bytes([1]))
        request.observeInterimResponse = { _ in count.withLock { $0 += 1 } }
        #expect(try await engine.perform(request).headers["X-Final"] == "1")
        #expect(count.withLock { $0 } == 2000)
        await engine.shutdown()
        server.stop()
    }

    @Test func observesInterimResponseBeforeCut() async throws {
        let server = try ScriptedServer(answers: [
            [.raw("HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /up/1\r\n\r\n"), .read(nil), .reset]
        ])
        let engine = CurlEngine()
        let heads = Locked<[String?]>([])
        var request = HTTPRequest(method: "POST", url: server.url(), body: .bytes([1, 2, 3]))
        request.observeInterimResponse = { head in heads.withLock { $0.append(head.headers["Location"]) } }
        let error = await #expect(throws: CurlEngineError.self) { try await engine.perform(request) }
        #expect(error?.kind == .connectionLost && error?.sent.read == 3)
        #expect(heads.withLock { $0 } == ["/up/1"])
        await engine.shutdown()
        server.stop()
    }

    @Test func returnsRedirectsToCaller() async throws {
        let server = try ScriptedServer(answers: [[.answer(307, ["Location": "/elsewhere"])]])
        let engine = CurlEngine()
        let response = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        #expect(response.status == 307)
        #expect(server.requests.count == 1)
        await engine.shutdown()
        server.stop()
    }

    @Test func truncatesLongResponse() async throws {
        let server = try ScriptedServer { _, _ in
            [.raw("HTTP/1.1 413 Scripted\r\n\r\n"), .raw(String(repeating: "x", count: 200_000)), .silence]
        }
        let engine = CurlEngine()
        let response = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        #expect(response.status == 413)
        #expect(response.body.count == 64 * 1024)
        #expect(response.isBodyTruncated)
        await engine.shutdown()
        server.stop()
    }

    @Test func reusesConnections() async throws {
        let server = try ScriptedServer { _, _ in [.answer(200)] }
        let engine = CurlEngine()
        for method in ["POST", "HEAD", "PATCH", "PATCH", "DELETE"] {
            _ = try await engine.perform(
                HTTPRequest(method: method, url: server.url(), body: ["POST", "PATCH"].contains(method) ? .bytes([1]) : .none))
        }
        #expect(server.requests.count == 5)
        #expect(server.connectionCount == 1)
        await engine.shutdown()
        server.stop()
    }

    @Test func pacesUpload() async throws {
        let server = try ScriptedServer(answers: [[.answer(204)]])
        let engine = CurlEngine()
        let calls = Locked(0)
        let response = try await engine.perform(
            HTTPRequest(method: "PATCH", url: server.url(), body: .bytes([UInt8](repeating: 7, count: 1000))),
            pacing: { limit in
                calls.withLock { count in
                    count += 1
                    return count.isMultiple(of: 2) ? Allowance(bytes: 100) : Allowance(bytes: 0, retryAfter: .milliseconds(1))
                }
            })
        #expect(response.sent.accepted == 1000)
        #expect(calls.withLock { $0 } == 20)
        #expect(server.requests.first?.body.count == 1000)
        await engine.shutdown()
        server.stop()
    }

    /// The header fields have optional whitespace around their values. One line ends with a bare LF, and one value contains U+0085, which is a line
    /// break in Unicode but not in HTTP.
    @Test func parsesHeaderFields() async throws {
        let fields = "X-Plain:a b\r\nX-Spaces: \t a:  b \t\r\nX-Empty:   \r\nX-Line: 1\nX-Other: \u{85}z\r\n"
        let server = try ScriptedServer { _, _ in [.raw("HTTP/1.1 204 Scripted\r\n\(fields)\r\n")] }
        let engine = CurlEngine()
        let headers = try await engine.perform(HTTPRequest(method: "GET", url: server.url())).headers
        #expect(headers["x-plain"] == "a b")
        #expect(headers["X-Spaces"] == "a:  b")
        #expect(headers["X-Empty"] == "")
        #expect(headers["X-Line"] == "1")
        #expect(headers["X-Other"] == "\u{85}z")
        #expect(headers.count == 5)
        await engine.shutdown()
        server.stop()
    }

    @Test func performsThousandRequestsInParallel() async throws {
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<1000 {
                group.addTask {
                    let body = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1000)
                    return try await engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: .bytes(body))).status
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 204, count: 1000))
        #expect(server.requests.count == 1000)
        #expect(server.connectionCount <= 256)
        await engine.shutdown()
        server.stop()
    }
}
