import CurlEngine
import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

@Suite struct HeaderHookTests {
    /// The script of a server that rejects tokens whose number is below the given number.
    private static func script(from number: Int, status: Int = 401, _ success: ServerStep = .answer(201)) -> ScriptedServer.Script {
        { request, _ in
            let token = request.headers["authorization"]?.split(separator: "-").last.flatMap { Int($0) } ?? -1
            return [token >= number ? success : .answer(status)]
        }
    }

    private static func transfer(
        _ mode: String, size: Int? = 100_000, _ hook: @escaping HeaderHook, _ script: @escaping ScriptedServer.Script
    ) throws -> TestTransfer {
        try TestTransfer(mode, "/files/", size: size, headers: hook, script)
    }

    @Test(arguments: ["put", "form"]) func hookReceivesRequest(mode: String) async throws {
        let tokens = Tokens()
        let transfer = try Self.transfer(mode, tokens.hook, Self.script(from: 0))
        _ = try await transfer.run()
        let request = try #require(tokens.requests.first)
        #expect(tokens.requests.count == 1)
        #expect(request.method == (mode == "put" ? "PUT" : "POST"))
        #expect(request.url == transfer.server.url(mode == "put" ? "/files/a.bin" : "/files/"))
        #expect(request.reason == .request && request.session == "s-1" && request.item == 3 && request.attempt == 1)
        #expect(request.account == "bucket" && request.endpoint == transfer.endpoint.location)
        #expect(request.context == Data("{}".utf8))
        #expect(transfer.server.requests.first?.headers["authorization"] == "Bearer token-0")
        await transfer.end()
    }

    @Test(arguments: [("put", 401), ("form", 401), ("put", 403)])
    func repeatsWholeRejectedRequest(mode: String, status: Int) async throws {
        let tokens = Tokens()
        let transfer = try Self.transfer(mode, tokens.hook, Self.script(from: 1, status: status))
        _ = try await transfer.run()
        let requests = transfer.server.requests
        #expect(requests.map { $0.headers["authorization"] } == ["Bearer token-0", "Bearer token-1"])
        #expect(requests.map(\.body.count)[1] == requests[0].contentLength)
        #expect(tokens.requests.map(\.reason) == [.request, .rejected])
        let progress = transfer.recorder.progress.map(\.sent)
        #expect(progress == progress.sorted())
        await transfer.end()
    }

    /// Repeated bytes are not progress. If the transport did not report them as activity, the queue would consider a slow upload stalled.
    @Test func reportsRepeatedContentAsActivity() async throws {
        let transfer = try Self.transfer("put", size: 5_000_000, Tokens().hook) { _, number in
            [.raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(nil), .answer(number == 0 ? 401 : 201)]
        }
        _ = try await transfer.run()
        #expect(transfer.recorder.activity > 0)
        await transfer.end()
    }

    @Test func repeatsRejectedDownload() async throws {
        let tokens = Tokens()
        let transfer = try Self.transfer("get", size: nil, tokens.hook, Self.script(from: 1, .answer(200, body: "content")))
        _ = try await transfer.run()
        #expect(transfer.content == "content")
        #expect(tokens.renewals == 1)
        await transfer.end()
    }

    @Test(arguments: [401, 403]) func secondRejectionIsFinal(status: Int) async throws {
        let tokens = Tokens()
        let transfer = try Self.transfer("put", tokens.hook, Self.script(from: 5, status: status))
        #expect(await transfer.failure()?.failureClass == .credentials)
        #expect(transfer.server.requests.count == 2)
        #expect(tokens.renewals == 1)
        await transfer.end()
    }

    /// The server also rejects the renewed header, so the header is not the cause. This also applies to a hook that signs each request.
    @Test(arguments: [true, false]) func treats403AfterSuccessAsFileError(signs: Bool) async throws {
        let (tokens, count) = (Tokens(), Locked(0))
        let transfer = try Self.transfer(
            "put",
            { request, headers in
                guard signs else { return try await tokens.hook(request, headers) }
                var headers = headers
                headers["Authorization"] = count.withLock { count in
                    count += 1
                    return "Signature \(count)"
                }
                return headers
            }, { _, number in [.answer(number == 1 || number == 2 ? 403 : 201)] })
        _ = try await transfer.run()
        let error = await transfer.failure()
        #expect(error?.failureClass == .permanent && error?.code == .forbidden)
        _ = try await transfer.run()
        #expect(transfer.server.requests.count == 4)
        await transfer.end()
    }

    @Test func renewsOnceForAllRejectedRequests() async throws {
        let tokens = Tokens()
        let count = 8
        let barrier = Locked<[CheckedContinuation<Void, Never>]>([])
        // Each request waits here until all are ready, so all requests are rejected before the first renewal begins.
        let hook: HeaderHook = { request, headers in
            if request.reason == .request, tokens.renewals == 0 {
                await withCheckedContinuation { continuation in
                    let ready = barrier.withLock { waiting in
                        waiting.append(continuation)
                        return waiting.count == count ? waiting : []
                    }
                    for continuation in ready { continuation.resume() }
                }
            }
            return try await tokens.hook(request, headers)
        }
        let transfer = try Self.transfer("put", hook, Self.script(from: 1))
        try await withThrowingTaskGroup { group in
            for _ in 0..<count { group.addTask { try await transfer.run() } }
            try await group.waitForAll()
        }
        #expect(tokens.renewals == 1)
        #expect(transfer.server.requests.count == 2 * count)
        await transfer.end()
    }

    @Test func doesNotCallHookForOtherOrigins() async throws {
        let tokens = Tokens()
        let other = try ScriptedServer(answers: [[.answer(401)]])
        var transfer = try Self.transfer("put", tokens.hook, Self.script(from: 0))
        transfer.options.uploadURL = other.url("/key?signature=0123456789abcdef")
        #expect(await transfer.failure() != nil)
        #expect(tokens.requests.isEmpty)
        #expect(other.requests.map { $0.headers["authorization"] } == [nil])
        other.stop()
        await transfer.end()
    }

    @Test(arguments: ["Content-Type", "Content-Length", "Range", "Host"]) func rejectsReservedHeaders(name: String) async throws {
        let transfer = try Self.transfer(
            "form",
            { _, headers in
                var headers = headers
                headers[name] = "1"
                return headers
            }, Self.script(from: 0))
        let error = await transfer.failure()
        #expect(error?.code == .invalidHeader)
        #expect(error?.message.contains("http transport") == true)
        #expect(transfer.server.requests.isEmpty)
        await transfer.end()
    }

    @Test func errorsDoNotRepeatAddedHeaders() async throws {
        let transfer = try Self.transfer(
            "put",
            { _, headers in
                var headers = headers
                headers["X-Signature"] = "sigSECRET"
                return headers
            }, { _, number in [number == 0 ? .answer(200, body: "signed sigSECRET") : .answer(400, body: "bad signature sigSECRET")] })
        #expect(try await transfer.run().serverResponse?.text.contains("SECRET") == false)
        #expect(await transfer.failure()?.description.contains("SECRET") == false)
        await transfer.end()
    }

    private static func setting(_ values: [String: String]) -> HeaderHook {
        { _, headers in values.reduce(into: headers) { $0[$1.key] = $1.value } }
    }

    /// Headers that describe the request, and short values, are not secrets, so the server may repeat them.
    @Test func keepsResponseThatRepeatsOrdinaryHeaders() async throws {
        let body = #"{"id":42,"request":"0123456789abcdef","tenant":"7"}"#
        let transfer = try Self.transfer(
            "form",
            Self.setting([
                "Accept": "application/json", "X-Tenant": "7", "X-Request-ID": "0123456789abcdef", "Idempotency-Key": "form-42-a",
            ])
        ) { request, _ in
            [.answer(201, ["Content-Type": "application/json", "Location": "\(request.path)17/form-42-a"], body: body)]
        }
        let receipt = try await transfer.run()
        #expect(receipt.serverResponse?.text == body && receipt.serverResponse?.mediaType == "application/json")
        #expect(receipt.remoteURL == transfer.server.url("/files/17/form-42-a"))
        await transfer.end()
    }

    /// Secrets are replaced, so that the rest of the response can be decoded.
    @Test func replacesSecretsInResponse() async throws {
        struct Created: Decodable { let id: Int, signature: String, token: String, number: Int }
        let body = #"{"id":42,"signature":"sig-SECRET","token":"tok\/en-SECRET","number":1234567890}"#
        let transfer = try Self.transfer(
            "form",
            Self.setting(["Authorization": "Bearer tok/en-SECRET", "X-Signature": "sig-SECRET", "X-Account": "1234567890"])
        ) { _, number in
            [.answer(number == 0 ? 201 : 422, ["Content-Type": "application/json"], body: body)]
        }
        let response = try #require(try await transfer.run().serverResponse)
        #expect(!response.text.contains("SECRET") && !response.text.contains("1234567890"))
        let created = try JSONDecoder().decode(Created.self, from: Data(response.text.utf8))
        #expect(created.id == 42 && created.signature == "[redacted]" && created.token == "[redacted]" && created.number == 0)
        let error = try #require(await transfer.failure()).description
        #expect(error.contains("42") && error.contains("[redacted]") && !error.contains("SECRET"), "\(error)")
        await transfer.end()
    }

    @Test func doesNotStoreRepeatedCookie() async throws {
        let transfer = try Self.transfer(
            "put", Self.setting(["Cookie": "lang=en; session=cookie-SECRET"])
        ) { _, _ in [.answer(201, body: "session cookie-SECRET, language en")] }
        #expect(try await transfer.run().serverResponse?.text == "session [redacted], language en")
        await transfer.end()
    }
}
