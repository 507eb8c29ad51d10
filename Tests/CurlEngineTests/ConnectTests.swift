import CurlEngine
import ProcessFixture
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#endif

/// Plain TCP connections that the engine opens for other protocols. libcurl must send no bytes to the server.
@Suite(.timeLimit(.minutes(30))) struct ConnectTests {
    /// Writes the text, and then reads until the other end closes the connection.
    private func exchange(_ text: String, over socket: FileDescriptor) async throws -> String {
        try await WorkerThreads(limit: 1).run {
            try socket.writeAll(text.utf8)
            var received: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1000)
            while true {
                var event = pollfd(fd: socket.rawValue, events: Int16(POLLIN), revents: 0)
                unsafe poll(&event, 1, -1)
                let count = unsafe try buffer.withUnsafeMutableBytes { unsafe try socket.read(into: $0) }
                guard count > 0 else { return String(decoding: received, as: UTF8.self) }
                received += buffer[..<count]
            }
        }
    }

    /// The server listens only on IPv4. The name `localhost` has addresses of both families.
    @Test(arguments: ["127.0.0.1", "localhost"]) func returnsSocketToCaller(host: String) async throws {
        let server = try ScriptedServer { _, _ in [.raw("hello"), .close] }
        let engine = CurlEngine()
        let socket = try await engine.connect(host: host, port: server.port)
        #expect(fcntl(socket.rawValue, F_GETFL) & O_NONBLOCK != 0)
        #expect(fcntl(socket.rawValue, F_GETFD) & FD_CLOEXEC != 0)
        // The socket remains usable after the engine has shut down. The engine has sent no bytes on it.
        await engine.shutdown()
        #expect(server.requests.isEmpty)
        #expect(try await exchange("PING x y\r\n\r\n", over: socket) == "hello")
        #expect(server.requests.first?.method == "PING")
        try socket.close()
        server.stop()
    }

    @Test func connectsThroughProxy() async throws {
        // The server's first bytes arrive together with the end of the proxy's response. They must not be lost.
        let proxy = try ScriptedServer { request, _ in
            request.method == "CONNECT" ? [.raw("HTTP/1.1 200 Scripted\r\n\r\nSSH-2.0-early\r\n")] : [.raw("late"), .close]
        }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        options.proxy = .url("http://127.0.0.1:\(proxy.port)", userName: "anna", password: Secret("one"))
        let socket = try await engine.connect(host: "host.invalid", port: 22, options: options)
        #expect(try await exchange("PING x y\r\n\r\n", over: socket) == "SSH-2.0-early\r\nlate")
        #expect(proxy.requests.map(\.method) == ["CONNECT", "PING"])
        #expect(proxy.requests.first?.path == "host.invalid:22")
        #expect(proxy.requests.first?.headers["proxy-authorization"] == "Basic YW5uYTpvbmU=")
        try socket.close()
        await engine.shutdown()
        proxy.stop()
    }

    @Test func reportsFailedConnections() async throws {
        let closed = try ReservedPort()
        let engine = CurlEngine()
        func failure(_ host: String, _ options: ConnectionOptions = ConnectionOptions()) async -> CurlEngineError.Kind? {
            await #expect(throws: CurlEngineError.self) { try await engine.connect(host: host, port: closed.port, options: options) }?.kind
        }
        #expect(await failure("127.0.0.1") == .refused)
        #expect(await failure("::1") == .refused)
        for host in ["", "a b", "a/b", "user@host", "[::1]", "a\r\nb"] { #expect(await failure(host) == .invalidRequest) }
        var options = ConnectionOptions()
        options.proxy = .url("https://127.0.0.1:1")
        #expect(await failure("127.0.0.1", options) == .invalidRequest)
        let proxy = try ScriptedServer { _, _ in [.raw("HTTP/1.1 403 Scripted\r\nContent-Length: 0\r\n\r\n"), .close] }
        options.proxy = .url("http://127.0.0.1:\(proxy.port)")
        #expect(await failure("127.0.0.1", options) == .proxyRefused)
        await engine.shutdown()
        proxy.stop()
    }

    /// Runs in a separate process, because environment variables apply to the whole process.
    @Test(.oneProcessAtATime) func usesProxyFromEnvironment() async {
        await #expect(processExitsWith: .success) {
            let proxy = try ScriptedServer { _, _ in [.raw("HTTP/1.1 200 Scripted\r\n\r\n")] }
            let closed = try ReservedPort()
            unsafe setenv("http_proxy", closed.url(), 1)
            unsafe setenv("ALL_PROXY", "127.0.0.1:\(proxy.port)", 1)
            let engine = CurlEngine()
            try await engine.connect(host: "host.invalid", port: 22).close()
            #expect(proxy.requests.map(\.path) == ["host.invalid:22"])
            await engine.shutdown()
        }
    }
}
