import CurlEngine
import ProcessFixture
import ScriptedHTTP
import Testing
import TransferCore

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.timeLimit(.minutes(30))) struct ConnectionOptionsTests {
    @Test func usesOnlyConfiguredAddressFamily() async throws {
        // The server listens only on IPv4.
        let server = try ScriptedServer { _, _ in [.answer(200)] }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        let url = "http://localhost:\(server.port)/"
        options.addressFamily = .ipv4
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: url, connection: options)).status == 200)
        options.addressFamily = .ipv6
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: url, connection: options))
        }
        #expect(error?.kind == .refused)
        options.addressFamily = .any
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: url, connection: options)).status == 200)
        await engine.shutdown()
        server.stop()
    }

    @Test func usesLocalInterface() async throws {
        let server = try ScriptedServer { _, _ in [.answer(200)] }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        options.localInterface = "127.0.0.2"
        _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url(), connection: options))
        // Without the engine's connection pools, libcurl would reuse the bound connection here.
        _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
        _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url(), connection: options))
        #expect(server.requests.map(\.peer) == ["127.0.0.2", "127.0.0.1", "127.0.0.2"])
        #expect(server.requests.map(\.connection) == [1, 2, 1])
        for name in ["no-such-interface", "host.invalid"] {
            options.localInterface = name
            let error = await #expect(throws: CurlEngineError.self) {
                try await engine.perform(HTTPRequest(method: "GET", url: server.url(), connection: options))
            }
            #expect(error?.kind == .refused)
        }
        await engine.shutdown()
        server.stop()
    }

    @Test func usesProxyWithCredentials() async throws {
        let proxy = try ScriptedServer { _, _ in [.answer(200)] }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        func perform(_ proxy: Proxy) async throws {
            options.proxy = proxy
            _ = try await engine.perform(HTTPRequest(method: "GET", url: "http://host.invalid/path", connection: options))
        }
        let url = "http://127.0.0.1:\(proxy.port)"
        try await perform(.url(url))
        try await perform(.url(url, userName: "anna", password: Secret("one")))
        try await perform(.url(url, userName: "anna", password: Secret("two")))
        try await perform(.url(url, userName: "anna", password: Secret("one")))
        #expect(proxy.requests.map(\.path) == Array(repeating: "http://host.invalid/path", count: 4))
        let credentials = proxy.requests.map { $0.headers["proxy-authorization"] }
        #expect(credentials == [nil, "Basic YW5uYTpvbmU=", "Basic YW5uYTp0d28=", "Basic YW5uYTpvbmU="])
        // Only requests with the same credentials reuse a connection.
        #expect(proxy.requests.map(\.connection) == [1, 2, 3, 2])
        await engine.shutdown()
        proxy.stop()
    }

    @Test func appliesProxyExceptions() async throws {
        let closed = try ReservedPort()
        let server = try ScriptedServer { _, _ in [.answer(200)] }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        options.proxy = .url("http://127.0.0.1:\(closed.port)", exceptions: ["example.com", "127.0.0.0/8"])
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url(), connection: options)).status == 200)
        options.proxy = .url("http://127.0.0.1:\(closed.port)", exceptions: ["example.com"])
        await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url(), connection: options))
        }
        await engine.shutdown()
        server.stop()
    }

    @Test func reportsProxyRefusal() async throws {
        let proxy = try ScriptedServer { _, _ in [.raw("HTTP/1.1 407 Scripted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .close] }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        options.proxy = .url("http://127.0.0.1:\(proxy.port)", userName: "anna", password: Secret("secret"))
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: "https://host.invalid/", connection: options))
        }
        #expect(error?.kind == .proxyRefused)
        #expect(error?.proxyStatus == 407)
        #expect(error?.message.contains("http://127.0.0.1:\(proxy.port) responded with 407") == true)
        #expect(proxy.requests.first?.method == "CONNECT")
        await engine.shutdown()
        proxy.stop()
    }

    @Test(arguments: ["127.0.0.1:80", "ftp://proxy", "http://anna:secret@proxy", "http://a b", "", "http://proxy\r\nX: 1"])
    func rejectsInvalidProxies(url: String) async throws {
        let engine = CurlEngine()
        var options = ConnectionOptions()
        options.proxy = .url(url)
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: "http://127.0.0.1:1/", connection: options))
        }
        #expect(error?.kind == .invalidRequest)
        #expect(error?.description.contains("secret") != true)
        await engine.shutdown()
    }

    /// Runs in a separate process, because environment variables apply to the whole process.
    @Test(.oneProcessAtATime) func usesProxyFromEnvironment() async {
        await #expect(processExitsWith: .success) {
            let proxy = try ScriptedServer { _, _ in [.answer(200)] }
            let server = try ScriptedServer { _, _ in [.answer(200)] }
            unsafe setenv("http_proxy", "http://anna:one@127.0.0.1:\(proxy.port)", 1)
            unsafe setenv("NO_PROXY", "127.0.0.1", 1)
            let engine = CurlEngine()
            _ = try await engine.perform(HTTPRequest(method: "GET", url: "http://host.invalid/"))
            #expect(proxy.requests.first?.headers["proxy-authorization"] == "Basic YW5uYTpvbmU=")
            _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url()))
            #expect(server.requests.count == 1)
            var options = ConnectionOptions()
            options.proxy = .direct
            await #expect(throws: CurlEngineError.self) {
                try await engine.perform(HTTPRequest(method: "GET", url: "http://host.invalid/", connection: options))
            }
            #expect(proxy.requests.count == 1)
            await engine.shutdown()
        }
    }

    @Test(.oneProcessAtATime, arguments: ["https_proxy", "HTTPS_PROXY"]) func usesProxyFromEnvironmentForHTTPS(name: String) async {
        await #expect(processExitsWith: .success) { [name = name as String] in
            let proxy = try ScriptedServer { _, _ in [.answer(403)] }
            let closed = try ReservedPort()
            unsafe setenv("http_proxy", closed.url(), 1)
            unsafe setenv(name, "http://anna:one@127.0.0.1:\(proxy.port)", 1)
            let engine = CurlEngine()
            let error = await #expect(throws: CurlEngineError.self) {
                try await engine.perform(HTTPRequest(method: "GET", url: "https://host.invalid/"))
            }
            #expect(error?.kind == .proxyRefused)
            #expect(proxy.requests.map { "\($0.method) \($0.path)" } == ["CONNECT host.invalid:443"])
            #expect(proxy.requests.first?.headers["proxy-authorization"] == "Basic YW5uYTpvbmU=")
            await engine.shutdown()
        }
    }

    /// Uses more sets of options than the engine has connection pools. The engine keeps the pools in use, and recreates removed pools when
    /// they are needed again.
    @Test func supportsMoreSetsOfOptionsThanPools() async throws {
        let server = try ScriptedServer { _, _ in [.answer(200)] }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        for round in 0..<2 {
            for number in 1...30 {
                options.localInterface = "127.0.0.\(number)"
                for _ in 0..<2 {
                    _ = try await engine.perform(HTTPRequest(method: "GET", url: server.url(), connection: options))
                }
                #expect(server.connectionCount == round * 30 + number)
            }
        }
        await engine.shutdown()
        server.stop()
    }
}
