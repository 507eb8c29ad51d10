import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransportTUS

/// Uploads with the IETF protocol *Resumable Uploads for HTTP* through nginx, with TLS, over HTTP/1.1 and HTTP/2. nginx 1.22 forwards an interim
/// response (104) as if it were the final one.
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

    /// nginx breaks a request if the server sends an interim response. Nevertheless, no attempt fails over HTTP/1.1, and at most one over HTTP/2. The
    /// file arrives exactly once, even if the connection to nginx breaks twice.
    @Test(arguments: ["1.1", "2"], [true, false]) func sendsFile(httpVersion: String, streams: Bool) async throws {
        let path = try interop.file("file", size: Self.size)
        let (again, cut) = (try link(path, as: "again"), try link(path, as: "cut"))
        for dialect in ResourceLoopbackTests.dialects {
            try await ResourceNginxTests().send(path, again, cut, dialect, httpVersion: httpVersion, streams: streams)
        }
    }

    /// Creates a hard link to a large file, because creating the content of another large file would take long.
    private func link(_ path: FilePath, as name: String) throws -> FilePath {
        let other = path.removingLastComponent().appending(name)
        try FileManager.default.linkItem(atPath: path.string, toPath: other.string)
        return other
    }

    private func send(
        _ path: FilePath, _ again: FilePath, _ cut: FilePath, _ dialect: LoopbackDialect, httpVersion: String, streams: Bool
    ) async throws {
        let site = try await open(LoopbackOptions(dialect: dialect), httpVersion: httpVersion, streams: streams)
        // Over HTTP/2, the transport learns from its first request that nginx breaks requests with interim responses, so one attempt may fail.
        #expect(try await site.upload.complete(path).failures <= (httpVersion == "2" ? 1 : 0), "\(dialect)")
        try checkContent(path, site)
        for later in [again, try interop.file("small", size: 1000)] {
            #expect(try await site.upload.complete(later).failures == 0, "\(dialect)")
            try checkContent(later, site)
        }
        // This transport does not know yet that nginx breaks requests with interim responses.
        let other = TUSTransport()
        var upload = site.upload
        upload.transport = other
        Self.cutTwice(site.relay)
        #expect(try await upload.complete(cut).failures >= 1 && site.relay.hasCutAll, "\(dialect)")
        try checkContent(cut, site)
        await other.shutdown()
        await close(site)
    }

    private static func cutTwice(_ relay: CuttingRelay) {
        relay.cut(afterBytes: 4 << 20)
        relay.cut(afterBytes: 10 << 20)
    }

    /// swift-nio-extras sends an interim response to each request, and forgets complete uploads. After an interim response, nginx waits for the
    /// server, and the client waits for nginx.
    @Test(arguments: NIOUploadTests.versions, [true, false]) func resumesAtSwiftNIO(version: String, streams: Bool) async throws {
        let server = try await NIOUploadServer(usesRelativeLocation: true)
        let proxy = try await NginxProxy.start(
            in: interop.folder.appending(path: "proxy"), forwardingTo: Int(server.reservedPort.port),
            options: NginxProxy.Options(streams: streams, readTimeout: 5))
        let relay = try CuttingRelay(to: proxy.port)
        let first = try interop.file("1.1", size: Self.size)
        for (httpVersion, path) in [("1.1", first), ("2", try link(first, as: "2"))] {
            let transport = try NIOUploadTests.transport(version)
            var upload = DirectUpload(
                transport, to: "https://127.0.0.1:\(relay.port)/files", settings: ["caFile": proxy.certificate, "httpVersion": httpVersion])
            // Only a response to `OPTIONS` shows that nginx is in front of the server. This transport is given the version, so it sends no
            // `OPTIONS`, and over HTTP/1.1 it would send the content in the creation request.
            upload.options.creation = .separate
            Self.cutTwice(relay)
            #expect(try await upload.complete(path).failures >= 1 && relay.hasCutAll, "HTTP/\(httpVersion)")
            #expect(try server.files.last == interop.content(path), "HTTP/\(httpVersion)")
            await transport.shutdown()
        }
        #expect(server.files.count == 2, "no file arrives twice")
        relay.stop()
        await server.stop()
    }

    /// Without interim responses, no attempt fails over HTTP/2.
    @Test(arguments: [true, false]) func usesHTTP2WithoutInterimResponses(streams: Bool) async throws {
        let site = try await open(
            LoopbackOptions(dialect: .draft8, sendsInterimResponses: false), httpVersion: "2", streams: streams)
        let path = try interop.file("file", size: Self.size)
        #expect(try await site.upload.complete(path).failures == 0)
        try checkContent(path, site)
        #expect(try await site.proxy.requests.allSatisfy { $0.version == "HTTP/2.0" })
        await close(site)
    }
}
