import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// How the transport classifies responses and follows redirects.
@Suite struct ResponseTests {
    @Test(arguments: [
        (301, FailureClass.permanent, TransferError.Code.rejected), (304, .permanent, .rejected), (400, .permanent, .rejected),
        (401, .credentials, .credentialsRejected), (403, .permanent, .forbidden), (404, .unsupported, .notThisProtocol),
        (405, .unsupported, .notThisProtocol), (408, .transient, .serverError), (409, .permanent, .rejected),
        (410, .unsupported, .notThisProtocol), (411, .permanent, .rejected), (412, .permanent, .rejected), (413, .permanent, .tooLarge),
        (415, .permanent, .rejected), (422, .permanent, .rejected), (423, .transient, .serverError), (429, .transient, .serverError),
        (500, .transient, .serverError), (501, .unsupported, .notThisProtocol), (502, .transient, .serverUnavailable),
        (503, .transient, .serverUnavailable), (507, .remoteFull, .remoteFull),
    ])
    func classifiesRejectedUploads(status: Int, failureClass: FailureClass, code: TransferError.Code) async throws {
        let transfer = try TestTransfer("put", size: 10) { _, _ in [.answer(status, ["Retry-After": "7"], body: "Because.\nMore.")] }
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == failureClass)
        #expect(failure.code == code)
        #expect(failure.cause == "PUT returned \(status)" + (status == 304 ? "" : ": Because."))
        #expect(failure.retryAfter == (status == 429 || status == 503 ? .seconds(7) : nil))
        await transfer.end()
    }

    @Test(arguments: [
        (408, "stopped waiting for the request"), (423, "reports that the file is locked"),
        (425, "asks the client to repeat the request later"), (429, "is busy"),
    ])
    func describesTemporaryRejections(status: Int, words: String) async throws {
        let transfer = try TestTransfer("put", size: 10) { _, _ in [.answer(status)] }
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == .transient && failure.code == .serverError)
        #expect(failure.message.hasPrefix("The server ") && failure.message.hasSuffix(" \(words)."), "\(failure)")
        await transfer.end()
    }

    @Test(arguments: [
        (302, FailureClass.permanent, TransferError.Code.rejected), (400, .permanent, .rejected), (401, .credentials, .credentialsRejected),
        (403, .permanent, .forbidden), (404, .permanent, .noSuchRemoteFile), (405, .unsupported, .unsupported),
        (410, .permanent, .noSuchRemoteFile), (429, .transient, .serverError), (500, .transient, .serverError),
    ])
    func classifiesRejectedDownloads(status: Int, failureClass: FailureClass, code: TransferError.Code) async throws {
        let transfer = try TestTransfer("get") { _, _ in [.answer(status)] }
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == failureClass)
        #expect(failure.code == code)
        #expect(transfer.content == nil)
        #expect(transfer.server.requests.count == (status == 400 ? 2 : 1))
        await transfer.end()
    }

    /// A form handler responds with a page, and an object store with XML.
    @Test(
        arguments: [
            (
                "text/html; charset=utf-8",
                "<!doctype html>\n<html><head><title>422</title><style>p {}</style></head>\n<body><h1>Refused</h1>\n<p>title is <b>missing</b> &amp; &lt;8</p></body></html>",
                "Refused title is missing & <8"
            ),
            (
                "application/xml", "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>Look at it.</Message></Error>",
                "SignatureDoesNotMatch Look at it."
            ), ("text/html", "no tags", "no tags"), ("text/html", "<script>x</script>", nil), ("image/png", "x", nil),
        ] as [(String, String, String?)])
    func errorShowsTextOfPage(type: String, body: String, words: String?) async throws {
        let transfer = try TestTransfer("form", size: 10, answers: [[.answer(422, ["Content-Type": type], body: body)]])
        let failure = try #require(await transfer.failure())
        #expect(failure.cause == "POST returned 422" + (words.map { ": \($0)" } ?? ""))
        await transfer.end()
    }

    @Test(arguments: [
        ("put", 404, [:], "check the path in the account's address"), ("put", 405, [:], "https+form"), ("form", 405, [:], "https+put"),
        ("post", 405, [:], "https+put"),
        ("put", 304, [:], "If-None-Match"), ("put", 302, ["Location": "http://127.0.0.2/x?s=1"], "to http://127.0.0.2, "),
        ("form", 302, ["Location": "/done"], "another path there"), ("form", 302, ["Location": "/done"], "acceptedStatuses=302"),
        ("put", 307, ["Location": "http://127.0.0.2:81/x"], "http://127.0.0.2:81, which the account does not trust"),
        ("put", 307, [:], "without a valid target"), ("get", 302, ["Location": "https://127.0.0.2/x"], "https://127.0.0.2, "),
    ])
    func errorIncludesAdvice(mode: String, status: Int, headers: [String: String], words: String) async throws {
        let transfer = try TestTransfer(mode, size: mode == "get" ? nil : 10, answers: [[.answer(status, headers)]])
        let failure = try #require(await transfer.failure())
        #expect(failure.message.contains(words), "\(failure)")
        #expect(!failure.message.contains("s=1"))
        await transfer.end()
    }

    @Test(arguments: [
        "<center>The plain HTTP request was sent to HTTPS port</center>",
        "Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />", "Client sent an HTTP request to an HTTPS server.\n",
    ])
    func errorExplainsThatPortRequiresTLS(page: String) async throws {
        let transfer = try TestTransfer("put", size: 10, answers: [[.answer(400, ["Content-Type": "text/html"], body: page)]])
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == .unsupported && failure.message.contains("change http to https"))
        await transfer.end()
    }

    /// The server responds with a TLS alert: record type, version, length, level and description (RFC 8446, sections 5.1 and 6).
    @Test func errorExplainsTLSResponseToPlainRequest() async throws {
        let transfer = try TestTransfer("put", size: 10, answers: [[.raw("\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\u{46}"), .close]])
        let failure = try #require(await transfer.failure())
        #expect(failure.code == .notThisProtocol && failure.message.contains("change http to https"), "\(failure)")
        await transfer.end()
    }

    @Test(arguments: [307, 308]) func uploadFollowsRedirectOnSameServer(status: Int) async throws {
        let transfer = try TestTransfer(
            "put", size: 100_000, answers: [[.answer(status, ["Location": "/elsewhere?x=1"])], [.answer(201)]])
        let receipt = try await transfer.run()
        #expect(receipt.remoteURL == transfer.server.url("/elsewhere"))
        #expect(transfer.server.requests.map(\.method) == ["PUT", "PUT"])
        #expect(transfer.server.requests.map(\.body.count) == [100_000, 100_000])
        let progress = transfer.recorder.progress.map(\.sent)
        #expect(progress == progress.sorted())
        await transfer.end()
    }

    @Test func uploadFollowsRedirectToTrustedServerWithoutCredentials() async throws {
        let other = try ScriptedServer(answers: [[.answer(200)]])
        var transfer = try TestTransfer("form", size: 10) { _, _ in [.answer(307, ["Location": other.url("/x")])] }
        transfer.endpoint.credentials = [.bearer(.environment("TOKEN"))]
        transfer.endpoint.settings = ["header.x-own": "1"]
        transfer.credentials.secrets = ["TOKEN": "hunter2"]
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .permanent)
        #expect(failure?.message.contains("origins") == true)
        #expect(other.requests.isEmpty)
        transfer.endpoint.settings["origins"] = "http://127.0.0.1:\(other.port)"
        _ = try await transfer.run()
        #expect(other.requests.map { $0.headers["authorization"] } == [nil])
        #expect(other.requests.map { $0.headers["x-own"] } == [nil])
        #expect(transfer.server.requests.last?.headers["authorization"] == "Bearer hunter2")
        other.stop()
        await transfer.end()
    }

    /// Headers of the account and of the session may also contain secrets.
    @Test(arguments: [true, false]) func sendsConfiguredHeadersOnlyToTrustedOrigins(isTrusted: Bool) async throws {
        let other = try ScriptedServer(answers: [[.answer(200)]])
        var transfer = try TestTransfer("put", size: 10, answers: [])
        transfer.endpoint.credentials = [.header("X-Key", .environment("TOKEN"))]
        transfer.endpoint.settings = ["header.X-Account": "1"]
        if isTrusted { transfer.endpoint.settings["origins"] = other.url("") }
        transfer.credentials.secrets = ["TOKEN": "hunter2"]
        transfer.options.headers = ["X-Session": "1", "Content-Type": "text/x-own"]
        transfer.options.uploadURL = other.url("/signed?signature=abcdefgh")
        _ = try await transfer.run()
        let request = try #require(other.requests.first)
        for name in ["x-key", "x-account", "x-session"] { #expect((request.headers[name] != nil) == isTrusted, "\(name)") }
        #expect(request.headers["content-type"] == "text/x-own" && request.headers["user-agent"] == "TransferKit")
        other.stop()
        await transfer.end()
    }

    @Test func stopsRedirectLoops() async throws {
        let transfer = try TestTransfer("get") { _, _ in [.answer(302, ["Location": "/files/a.bin"])] }
        #expect(await transfer.failure()?.failureClass == .unreachable)
        #expect(transfer.server.requests.count == 6)
        await transfer.end()
    }

    @Test func downloadFollowsRedirect() async throws {
        let transfer = try TestTransfer(
            "get", "/latest?file={name}", answers: [[.answer(302, ["Location": "/7"])], [.answer(200, body: "content")]])
        let receipt = try await transfer.run()
        #expect(transfer.content == "content")
        #expect(transfer.server.requests.map(\.path) == ["/latest?file=a.bin", "/7"])
        #expect(receipt.remoteURL == transfer.server.url("/latest"))
        #expect(receipt.serverResponse == nil)
        await transfer.end()
    }

    /// A combining mark after the secret changes its last character.
    @Test(arguments: ["", "\u{301}"]) func doesNotStoreSecretRepeatedByServer(mark: String) async throws {
        let body = "token hunter2-horse\(mark)"
        var transfer = try TestTransfer("put", size: 1, answers: [[.answer(200, body: body)], [.answer(422, body: body)]])
        transfer.endpoint.credentials = [.bearer(.environment("TOKEN"))]
        transfer.credentials.secrets = ["TOKEN": "hunter2-horse"]
        let response = try #require(try await transfer.run().serverResponse)
        #expect(response.status == 200 && response.text == "token [redacted]\(mark)")
        let failure = try #require(await transfer.failure())
        #expect(failure.description.contains("token [redacted") && !failure.description.contains("hunter2"))
        await transfer.end()
    }

    /// A short secret can also occur in ordinary text. There, `[redacted]` would reveal the secret, so the whole text is omitted.
    @Test func omitsResponseThatRepeatsShortSecret() async throws {
        var transfer = try TestTransfer("put", size: 1, answers: [[.answer(200, body: "banana")], [.answer(422, body: "banana")]])
        transfer.endpoint.credentials = [.bearer(.environment("TOKEN"))]
        transfer.credentials.secrets = ["TOKEN": "an"]
        #expect(try await transfer.run().serverResponse?.text.contains("omitted") == true)
        #expect(await transfer.failure()?.description.contains("omitted") == true)
        await transfer.end()
    }

    /// The client sends the password in Base64, but the responses repeat its plain text.
    @Test func doesNotStorePasswordRepeatedByServer() async throws {
        var transfer = try TestTransfer("form", size: 1) { request, number in
            number == 0
                ? [.answer(200, ["Content-Type": "text/hunter2-horse"], body: "hello anna")]
                : [.answer(303, ["Location": "/u/hunter2-horse/7"], body: #"{"user":"anna","password":"hunter2-horse"}"#)]
        }
        transfer.endpoint.address = "http+form://anna@127.0.0.1:\(transfer.server.port)/"
        transfer.endpoint.credentials = [.password(.environment("P"))]
        transfer.credentials.secrets = ["P": "hunter2-horse"]
        var receipt = try await transfer.run()
        #expect(receipt.serverResponse?.text.contains("omitted") == true && receipt.serverResponse?.mediaType == nil)
        receipt = try await transfer.run()
        #expect(receipt.serverResponse?.text == #"{"user":"anna","password":"[redacted]"}"#)
        #expect(receipt.remoteURL == nil)
        await transfer.end()
    }
}
