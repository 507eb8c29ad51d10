import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct ConnectionSettingsTests {
    @Test func usesProxy() async throws {
        // Requests to an http proxy contain the absolute URL (RFC 9112, section 3.2.2).
        let proxy = try ScriptedServer { request, _ in [request.method == "POST" ? .tus(201, ["Location": "/1"]) : .accepted(10)] }
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.settings = ["proxy": proxy.url(""), "proxyUser": "joe", "proxyExceptions": "example.com"]
        upload.endpoint.credentials = [CredentialReference(kind: .proxyPassword, source: .environment("P"))]
        upload.credentials = FixedCredentials(secrets: ["P": "s3cr3t"])
        _ = try await upload.run()
        #expect(upload.server.requests.isEmpty)
        #expect(proxy.requests.first?.path == upload.server.url())
        #expect(proxy.requests.allSatisfy { $0.headers["proxy-authorization"] == "Basic am9lOnMzY3IzdA==" })
        #expect(proxy.requests.allSatisfy { $0.headers["authorization"] == nil })
        await upload.end()
        proxy.stop()
    }

    /// For http, the proxy responds in place of the server. For https, the proxy responds before the client reaches the server.
    @Test(arguments: ["http", "https"]) func errorNamesProxyThatRequiresCredentials(scheme: String) async throws {
        let proxy = try ScriptedServer { _, _ in [.answer(407, ["Proxy-Authenticate": "Basic realm=\"x\""], body: "no"), .close] }
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.address = "\(scheme)://host.invalid/files/"
        upload.endpoint.settings = ["proxy": proxy.url("")]
        let error = try #require(await upload.failure())
        #expect(error.failureClass == .credentials)
        #expect(error.message.contains("The proxy \(proxy.url("")) "))
        #expect(
            error.message.contains(
                "requires credentials for requests to \(scheme)://host.invalid, or rejected the credentials that it received. "
                    + "Check proxyUser and the proxy's password, or the proxy environment variables."))
        #expect(proxy.requests.first?.method == (scheme == "http" ? "OPTIONS" : "CONNECT"))
        await upload.end()
        proxy.stop()
    }

    /// The error names the proxy, because the server itself may be reachable.
    @Test(arguments: ["http", "socks5h"]) func errorNamesUnreachableProxy(scheme: String) async throws {
        let closed = try ReservedPort()
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.settings = ["proxy": "\(scheme)://127.0.0.1:\(closed.port)"]
        let error = try #require(await upload.failure())
        #expect(error.failureClass == .unreachable && error.code == .connectionRefused)
        #expect(error.message.hasPrefix("Cannot reach 127.0.0.1:\(closed.port), which is a proxy for "), "\(error.message)")
        #expect(
            error.message.contains(" http://127.0.0.1:\(upload.server.port) ") && error.message.contains("\"proxy\" setting"),
            "\(error.message)")
        await upload.end()
    }

    /// The system's error messages mention only the server. The transport's error therefore also names the settings that determine the
    /// route.
    @Test(arguments: [("proxy", "https"), ("proxy", "socks5h"), ("interface", "nosuch0")])
    func errorNamesRouteSettings(name: String, value: String) async throws {
        let proxy = try ScriptedServer { _, _ in [.raw("no such protocol\r\n\r\n"), .close] }
        defer { proxy.stop() }
        var upload = try TestUpload(size: 10, answers: [])
        let setting = name == "proxy" ? "\(value)://127.0.0.1:\(proxy.port)" : value
        upload.endpoint.settings = [name: setting]
        let error = try #require(await upload.failure())
        #expect(error.message.contains(" \(name) \(setting); check this configuration too."), "\(error.description)")
        #expect(upload.server.requests.isEmpty)
        await upload.end()
    }

    @Test func errorNamesUnreachableServer() async throws {
        let closed = try ReservedPort()
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.address = "http://127.0.0.1:\(closed.port)/files/"
        let error = try #require(await upload.failure())
        #expect(error.message == "Cannot reach http://127.0.0.1:\(closed.port).")
        await upload.end()
    }

    /// A server may store uploads on another host, and only that host may be down.
    @Test func errorNamesUnreachableUploadHost() async throws {
        let closed = try ReservedPort()
        var upload = try TestUpload(size: 10, answers: [[.tus(201, ["Location": "http://127.0.0.1:\(closed.port)/1"])]])
        upload.endpoint.settings["origins"] = "http://127.0.0.1:\(closed.port)"
        let error = try #require(await upload.failure())
        #expect(error.message.contains("Cannot reach http://127.0.0.1:\(closed.port)."), "\(error.message)")
        await upload.end()
    }

    @Test func connectsDirectlyIfConfigured() async throws {
        var upload = try TestUpload(size: 10, answers: [[.created], [.accepted(10)]])
        upload.endpoint.settings = ["proxy": "direct", "addressFamily": "ipv4", "interface": "127.0.0.1", "httpVersion": "1.1"]
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    @Test func errorNamesAddressFamilySetting() async throws {
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.settings = ["addressFamily": "ipv6"]
        let error = await upload.failure()
        #expect(error?.failureClass == .unreachable)
        #expect(error?.message.contains("connect to IPv6 addresses only;") == true, "\(error?.message ?? "")")
        await upload.end()
    }

    @Test(arguments: [
        ("httpVersion", "3"), ("addressFamily", "ipx"), ("clientKey", "/key.pem"), ("insecure", "yes"), ("pinnedPublicKeys", "short"),
        ("proxyUser", "joe"), ("proxy", "ftp://x"), ("proxy", "http://joe:secret@x"),
    ])
    func rejectsInvalidSettings(key: String, value: String) async throws {
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.settings = [key: value]
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.description.contains("secret") == false)
        #expect(upload.server.requests.isEmpty)
        await upload.end()
    }

    @Test func rejectsMissingClientCertificate() async throws {
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.address = upload.endpoint.address.replacing("http://", with: "https://")
        upload.endpoint.settings = ["clientCertificate": "/nonexistent/certificate.pem"]
        #expect(await upload.failure()?.failureClass == .credentials)
        await upload.end()
    }
}
