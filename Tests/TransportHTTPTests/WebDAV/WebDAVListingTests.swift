import CurlEngine
import Locking
import Logging
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

@Suite struct WebDAVListingTests {
    @Test func requestsOneLevel() async throws {
        let listing = try TestListing(
            TestListing.multistatus(TestListing.member("/dav/in/%C3%A4/a"), TestListing.member("/dav/in/%c3%a4/b%20c/", isFolder: true)))
        let (entries, error) = await listing.run()
        #expect(error == nil)
        #expect(entries == [RemoteEntry(name: Array("a".utf8), kind: .file(size: 5)), RemoteEntry(name: Array("b c".utf8), kind: .folder)])
        let request = try #require(listing.server.requests.first)
        #expect(request.method == "PROPFIND" && request.path == TestListing.path && request.headers["depth"] == "1")
        #expect(request.headers["content-type"]?.hasPrefix("application/xml") == true)
        #expect(String(decoding: request.body, as: UTF8.self).contains("<prop><resourcetype/><getcontentlength/></prop>"))
        #expect(listing.server.requests.count == 1)
        await listing.end()
    }

    @Test func passesOriginToHeaderHook() async throws {
        let requests = Locked<[RequestInfo]>([])
        let transport = HTTPTransport { request, headers in
            requests.withLock { $0.append(request) }
            return headers
        }
        let listing = try TestListing(TestListing.multistatus())
        let attempt = ListingAttempt(
            endpoint: listing.endpoint, remotePath: try RemotePath("in/ä"), origin: AttemptOrigin(session: "s-1", account: "nas"),
            credentials: FixedCredentials(), logger: Logger(label: "test"))
        try await transport.list(attempt) { _ in }
        #expect(requests.withLock { $0 }.map { "\($0.method) \($0.session) \($0.account)" } == ["PROPFIND s-1 nas"])
        await transport.shutdown()
        await listing.end()
    }

    /// Servers choose the prefix of the namespace, and the form of URLs.
    @Test(arguments: [
        TestListing.member("/dav/in/%C3%A4/x"), TestListing.member("  /dav/in/%C3%A4/x\n"), TestListing.member("/dav//in/ä/x"),
        TestListing.member("http://127.0.0.1/dav/in/%C3%A4/x"), TestListing.member("HTTPS://127.0.0.1:8443/dav/in/%C3%A4/x"),
        TestListing.member("x"), TestListing.member("./x"), TestListing.member("/dav/in/%C3%A4/%78"),
        TestListing.member("<![CDATA[/dav/in/ä/x]]>"),
        TestListing.member("/dav/in/&#xE4;/&#120;"), TestListing.member("<!-- a > b -->/dav/in/%C3%A4/x<?note x?>"),
        "<response xmlns='DAV:'><href>/dav/in/%C3%A4/x</href><propstat><prop><getcontentlength>5</getcontentlength><resourcetype/></prop></propstat></response>",
        """
        <a:response xmlns:a="DAV:" xmlns:b="urn:b"><a:propstat><a:prop><a:resourcetype/><b:getcontentlength>7</b:getcontentlength>
        <a:getcontentlength>5</a:getcontentlength></a:prop><a:status>HTTP/1.1 200 OK</a:status></a:propstat><a:propstat><a:prop><b:x y=">"/>
        <a:getcontentlength>9</a:getcontentlength></a:prop><a:status>HTTP/1.1 404 Not Found</a:status></a:propstat><a:href>/dav/in/%C3%A4/x</a:href></a:response>
        """,
    ])
    func acceptsFormsOfResponse(member: String) async throws {
        let listing = try TestListing(TestListing.multistatus(member))
        let (entries, error) = await listing.run()
        #expect(error == nil && entries == [RemoteEntry(name: Array("x".utf8), kind: .file(size: 5))], "\(String(describing: error))")
        await listing.end()
    }

    @Test(arguments: [
        ("%3F", "?"), ("a%23b", "a#b"), ("100%25", "100%"), ("100%", "100%"), ("%zz", "%zz"), ("a?b", "a?b"), ("&amp;&lt;&#39;", "&<'"),
        ("%0A", "\n"),
        ("a%2Bb+c", "a+b+c"), ("%F0%9F%8E%AC", "🎬"), ("]]", "]]"), ("a:b", "a:b"),
    ])
    func decodesNames(href: String, name: String) async throws {
        let listing = try TestListing(TestListing.multistatus(TestListing.member(TestListing.path + href)))
        #expect(try await listing.names() == [name])
        await listing.end()
    }

    /// The server sends the response in two writes. The first write has a different length each time.
    @Test func readsResponseSentInTwoWrites() async throws {
        let body = Array(
            TestListing.multistatus(
                TestListing.member("<!-- c --><![CDATA[/dav/in/]]>&#xE4;/x"), TestListing.member(TestListing.path + "y/", isFolder: true)
            ).utf8)
        let listing = try TestListing { _, number in
            let head = "HTTP/1.1 207 Scripted\r\nContent-Length: \(body.count)\r\n\r\n"
            let cut = (number * 11) % body.count
            return [.raw(head + String(decoding: body[..<cut], as: UTF8.self)), .raw(String(decoding: body[cut...], as: UTF8.self))]
        }
        for _ in 0..<80 { #expect(try await listing.names() == ["x", "y/"]) }
        await listing.end()
    }

    /// Members with only an error status, a removed member (404), and a file without a size.
    @Test func guessesUnreportedKinds() async throws {
        let status = { (name: String, status: Int) in
            "<D:response><D:href>\(TestListing.path)\(name)</D:href><D:status>HTTP/1.1 \(status) X</D:status></D:response>"
        }
        let listing = try TestListing(
            TestListing.multistatus(
                status("a", 403), status("b/", 403), status("gone", 404), TestListing.member(TestListing.path + "c", size: nil)))
        let (entries, error) = await listing.run()
        #expect(error == nil)
        #expect(
            entries == [
                RemoteEntry(name: Array("a".utf8), kind: .file(size: nil)), RemoteEntry(name: Array("b".utf8), kind: .folder),
                RemoteEntry(name: Array("c".utf8), kind: .file(size: nil)),
            ])
        await listing.end()
    }

    /// The server closes the idle connection when the second request arrives.
    @Test func repeatsRequestAfterLostConnection() async throws {
        let body = TestListing.multistatus(TestListing.member(TestListing.path + "x"))
        let listing = try TestListing { _, number in number == 1 ? [.close] : [.answer(207, body: body)] }
        for _ in 0..<2 { #expect(try await listing.names() == ["x"]) }
        let connections = listing.server.requests.map(\.connection)
        #expect(connections.count == 3 && connections[0] == connections[1] && connections[1] != connections[2])
        await listing.end()
    }

    @Test func followsTrustedRedirect() async throws {
        let moved = TestListing.multistatus(TestListing.member("/other/x")).replacing(TestListing.path, with: "/other/")
        let listing = try TestListing { request, _ in
            request.path == "/other/" ? [.answer(207, body: moved)] : [.answer(308, ["Location": "/other/"])]
        }
        #expect(try await listing.names() == ["x"])
        await listing.end()
    }

    @Test(arguments: [
        (404, FailureClass.permanent, TransferError.Code.noSuchRemoteFile), (405, .unsupported, .unsupported),
        (501, .unsupported, .unsupported),
        (200, .unsupported, .notThisProtocol), (403, .permanent, .forbidden), (401, .credentials, .credentialsRejected),
        (503, .transient, .serverUnavailable),
        (301, .permanent, .rejected),
    ])
    func classifiesRejectedListings(status: Int, failureClass: FailureClass, code: TransferError.Code) async throws {
        let listing = try TestListing(status: status, "<html/>")
        let error = await listing.failure()
        #expect(error?.failureClass == failureClass && error?.code == code, "\(String(describing: error))")
        await listing.end()
    }

    /// Apache rejects the URL of a file if it ends with a slash.
    @Test func recognizesFiles() async throws {
        let file = TestListing.multistatus().replacing("<D:collection/>", with: "")
        let direct = try TestListing(file)
        #expect(await direct.failure()?.code == .noSuchRemoteFile)
        await direct.end()
        let apache = try TestListing { request, _ in request.path.hasSuffix("/") ? [.answer(400)] : [.answer(207, body: file)] }
        let error = await apache.failure()
        #expect(error?.code == .noSuchRemoteFile && error?.message.contains("is a file") == true, "\(String(describing: error))")
        #expect(apache.server.requests.last?.headers["depth"] == "0")
        await apache.end()
    }

    @Test func rejectsListingWithoutSettingOrWithPlaceholder() async throws {
        let plain = try TestListing(webDAV: false) { _, _ in [.silence] }
        let missing = await plain.failure()
        #expect(missing?.failureClass == .unsupported && missing?.message.contains("webDAV") == true)
        #expect(plain.server.connectionCount == 0)
        await plain.end()
        let template = try TestListing(address: "/dav/{path}") { _, _ in [.silence] }
        #expect(await template.failure()?.failureClass == .unsupported)
        #expect(template.server.connectionCount == 0)
        await template.end()
    }

    /// A WebDAV server redirects the URL of a folder to the same URL with a slash.
    @Test(arguments: [(true, "/files/a.bin/"), (true, "/files/%61.bin/"), (false, "/files/a.bin/"), (true, "/files/b.bin/")])
    func recognizesFoldersInDownloads(webDAV: Bool, target: String) async throws {
        var transfer = try TestTransfer("get") { request, _ in
            request.path == target ? [.answer(200, body: "page")] : [.answer(301, ["Location": target])]
        }
        transfer.endpoint.settings = HTTPOptions(webDAV: webDAV).settings
        guard webDAV, target != "/files/b.bin/" else {
            #expect(try await transfer.run().bytes == 4)
            return await transfer.end()
        }
        let error = await transfer.failure()
        #expect(error?.failureClass == .permanent && error?.code == .isFolder, "\(String(describing: error))")
        await transfer.end()
    }
}
