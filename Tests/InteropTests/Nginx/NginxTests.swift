import Foundation
import Locking
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit
import TransportTUS

/// The queue and the tus transport through nginx: TLS, HTTP/1.1 and HTTP/2, small body limits, and buffered bodies.
@Suite struct NginxTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    private struct Site {
        let server: TUSLoopbackServer
        let proxy: NginxProxy
        let queue: TransferQueue
    }

    /// Starts a server and nginx, and opens a queue.
    ///
    /// - Parameter startRelay: Starts a relay to the given port, and returns the relay's port. By default, there is no relay.
    private func open(
        _ version: String, largestBody: String = "100m", options: LoopbackOptions = LoopbackOptions(usesRelativeLocation: true),
        startingRelay startRelay: (Int) throws -> Int = { $0 }
    ) async throws -> Site {
        let server = interop.loopbackServer(options)
        let port = try #require(try await server.start().port)
        let proxy = try await NginxProxy.start(in: interop.folder.appending(path: "proxy"), forwardingTo: port, largestBody: largestBody)
        let queue = try await interop.openQueue(
            "https://127.0.0.1:\(try startRelay(proxy.port))/files/", settings: ["caFile": proxy.certificate, "httpVersion": version])
        return Site(server: server, proxy: proxy, queue: queue)
    }

    private func upload(_ sizes: [Int], to site: Site) async throws -> TransferSession {
        let session = try await site.queue.enqueue(
            try .upload(
                sizes.map { try interop.file("file-\($0)", size: $0) }, to: "real",
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 100), filesInFlight: 1)))
        try await site.queue.start()
        return session
    }

    private func close(_ site: Site) async {
        await site.queue.shutdown()
        await site.server.stop()
    }

    @Test(arguments: [("1.1", "HTTP/1.1"), ("2", "HTTP/2.0")])
    func transfersFilesOfManySizes(version: String, loggedVersion: String) async throws {
        let site = try await open(version)
        let session = try await upload([0, 1, 5_000, 20 << 20], to: site)
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: site.server)
        let requests = try await site.proxy.requests
        #expect(requests.allSatisfy { $0.version == loggedVersion })
        #expect(requests.map(\.method) == ["OPTIONS", "POST", "POST", "POST", "POST", "PATCH"])
        #expect(site.server.statistics.bytesStored == 20 << 20 + 5_001)
        await close(site)
    }

    @Test(arguments: ["1.1", "2"]) func adaptsToBodyLimit(version: String) async throws {
        let site = try await open(version, largestBody: "1m")
        let session = try await upload([20 << 20, 20 << 20 + 1], to: site)
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: site.server)
        let requests = try await site.proxy.requests
        // Each 413 halves the body size, from 20 MiB down to 640 KiB. The second file starts with the size that worked.
        #expect(requests.count { $0.method == "PATCH" && $0.status == 413 } == 5)
        #expect(requests.count { $0.method == "HEAD" } == 5)
        // 20 MiB take 32 requests of 640 KiB. The additional byte of the second file takes one more request.
        #expect(requests.count { $0.method == "PATCH" && $0.status == 204 } == 32 + 33)
        #expect(requests.filter { $0.method == "PATCH" && $0.status == 204 }.allSatisfy { $0.length < 1 << 20 })
        #expect(site.server.statistics.bytesStored == 40 << 20 + 1)
        await close(site)
    }

    @Test func splitsFilesTooLargeForProxy() async throws {
        let site = try await open("1.1", largestBody: "600k")
        let session = try await upload([1_000_000, 999_999, 400_000], to: site)
        #expect(try await session.value.state == .completed)
        try await interop.checkContent(of: session, on: site.server)
        let requests = try await site.proxy.requests
        #expect(
            requests.map(\.method) == ["OPTIONS", "POST", "POST", "PATCH", "PATCH", "POST", "PATCH", "PATCH", "POST"],
            "only the first creation is too large")
        #expect(requests.count { $0.status == 413 } == 1)
        #expect(site.server.statistics.bytesStored == 2_399_999)
        await close(site)
    }

    @Test(arguments: ["1.1", "2"]) func sendsSmallerBodiesToBufferingProxy(version: String) async throws {
        let startedRelay = Locked<CuttingRelay?>(nil)
        let site = try await open(version) { port in
            let relay = try CuttingRelay(to: port)
            startedRelay.withLock { $0 = relay }
            return Int(relay.port)
        }
        let relay = try #require(startedRelay.withLock { $0 })
        defer { relay.stop() }
        relay.cut(afterBytes: 8 << 20)
        relay.cut(afterBytes: 3 << 20)
        let session = try await upload([20 << 20], to: site)
        #expect(try await session.value.state == .completed)
        #expect(relay.hasCutAll)
        try await interop.checkContent(of: session, on: site.server)
        let requests = try #require(site.server.statistics.uploads.first).requests
        // No byte of the interrupted requests reached the server.
        #expect(site.server.statistics.bytesStored == 20 << 20)
        #expect(requests.filter { $0.method == "HEAD" }.map(\.offset).first == 0)
        let patches = requests.filter { $0.method == "PATCH" }
        #expect(patches.count >= 5)
        #expect(patches.allSatisfy { $0.received <= 4 << 20 + 1 << 19 })
        await close(site)
    }

    @Test func rejectsUploadURLWithoutTLS() async throws {
        let site = try await open("1.1", options: LoopbackOptions())
        let session = try await upload([20 << 20], to: site)
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(
            error?.message
                == "The server https://127.0.0.1:\(site.proxy.port) returned an http: URL for the upload, so the content would be sent without TLS. If the server is behind a proxy, configure the proxy to send \"X-Forwarded-Proto: https\". The new upload remains on the server until it expires."
        )
        // The transport sent no other request, with or without TLS.
        #expect(site.server.statistics.requests == ["OPTIONS": 1, "POST": 1])
        #expect(site.server.statistics.bytesStored == 0)
        await close(site)
    }

    @Test func rejectsUntrustedCertificate() async throws {
        let site = try await open("2")
        try await site.queue.save(Account("real", endpoints: [.tus("https://127.0.0.1:\(site.proxy.port)/files/")]))
        let session = try await site.queue.enqueue(try .upload([interop.file("file", size: 9)], to: "real"))
        let events = site.queue.events
        try await site.queue.start()
        let error = await events.first { if case .accountBlocked("real", let error) = $0 { error } else { nil } }
        #expect(error?.failureClass == .trust)
        // The message suggests caFile, because the certificate is self-signed. It warns that pinning the key is not enough.
        #expect(
            error?.message
                == "The certificate of https://127.0.0.1:\(site.proxy.port) is not trusted, or does not match the host name. If you trust it, set caFile (transferq: --ca-file) to a file with its issuer's certificate, or with the certificate itself if it is self-signed. Pinning a key in pinnedPublicKeys does not make a certificate trusted."
        )
        #expect(try await session.status.state == .waiting)
        #expect(site.server.statistics.requests.isEmpty)
        await close(site)
    }
}
