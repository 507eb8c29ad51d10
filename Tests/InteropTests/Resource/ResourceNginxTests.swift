import Foundation
import Locking
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransportTUS

/// Uploads with the IETF's protocol through nginx, with TLS, over HTTP/1.1 and HTTP/2. nginx 1.22 forwards an
/// interim response (104) as if it were the final one.
@Suite struct ResourceNginxTests {
    private let interop: InteropFixture
    private let transport = TUSTransport()
    private static let size = 32 << 20

    init() throws {
        interop = try InteropFixture()
    }

    private struct Site {
        let server: TUSLoopbackServer
        let proxy: NginxProxy
        let relay: CuttingRelay
        let upload: DirectUpload
    }

    /// Starts a server, nginx, and a relay in front of nginx.
    private func open(_ options: LoopbackOptions, httpVersion: String, streams: Bool) async throws -> Site {
        var options = options
        // The server does not know that clients use TLS.
        options.usesRelativeLocation = true
        let server = interop.loopbackServer(options)
        let url = try await server.start()
        let proxy = try await NginxProxy.start(
            in: interop.folder.appending(path: "proxy"), forwardingTo: url.port ?? 0, options: NginxProxy.Options(streams: streams))
        let relay = try CuttingRelay(to: proxy.port)
        let upload = DirectUpload(
            transport, to: "https://127.0.0.1:\(relay.port)/files/",
            settings: ["caFile": proxy.certificate, "httpVersion": httpVersion, "dialect": "ietf"])
        return Site(server: server, proxy: proxy, relay: relay, upload: upload)
    }

    private func close(_ site: Site) async {
        await transport.shutdown()
        site.relay.stop()
        await site.server.stop()
    }

    private func checkContent(_ path: FilePath, _ site: Site) throws {
        let name = try #require(path.lastComponent).string
        let complete = site.server.statistics.uploads.filter { $0.filename == name && $0.isComplete }
        #expect(complete.count == 1, "the file arrives once")
        let stored = try site.server.storedFiles(named: name).map { try interop.content($0) }
        #expect(try stored.contains(interop.content(path)))
    }

    /// nginx breaks requests with interim responses, and the file still arrives exactly once.
    @Test(arguments: ["1.1", "2"], [true, false]) func sendsFile(httpVersion: String, streams: Bool) async throws {
        for dialect in [LoopbackDialect.draft6, .draft8, .draft10, .final] {
            let interop = try ResourceNginxTests()
            try await interop.sendFile(dialect, httpVersion: httpVersion, streams: streams)
        }
    }

    private func sendFile(_ dialect: LoopbackDialect, httpVersion: String, streams: Bool) async throws {
        let site = try await open(LoopbackOptions(dialect: dialect), httpVersion: httpVersion, streams: streams)
        let path = try interop.file("file", size: Self.size)
        let (_, failures) = try await site.upload.complete(path)
        #expect(failures <= 2, "\(dialect)")
        try checkContent(path, site)
        let again = try interop.file("again", size: 1000)
        _ = try await site.upload.run(again)
        try checkContent(again, site)
        await close(site)
    }

    /// Without interim responses, HTTP/2 works.
    @Test(arguments: [true, false]) func usesHTTP2WithoutInterimResponses(streams: Bool) async throws {
        let site = try await open(
            LoopbackOptions(dialect: .draft8, sendsInterimResponses: false), httpVersion: "2", streams: streams)
        let path = try interop.file("file", size: Self.size)
        #expect(try await site.upload.complete(path).failures == 0)
        try checkContent(path, site)
        #expect(try await site.proxy.requests.allSatisfy { $0.version == "HTTP/2.0" })
        await close(site)
    }

    @Test(arguments: ["1.1", "2"], [true, false]) func resumesAfterLostConnections(httpVersion: String, streams: Bool) async throws {
        let site = try await open(LoopbackOptions(dialect: .draft8), httpVersion: httpVersion, streams: streams)
        site.relay.cut(afterBytes: 20 << 20)
        site.relay.cut(afterBytes: 4 << 20)
        let path = try interop.file("file", size: Self.size)
        let (_, failures) = try await site.upload.complete(path)
        #expect(failures >= 1)
        try checkContent(path, site)
        await close(site)
    }
}
