import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransportTUS

/// Client certificates and pinned server keys, with an nginx proxy that requires a client certificate.
@Suite struct NginxClientCertificateTests {
    private let interop: InteropFixture
    private let server: TUSLoopbackServer
    private let transport = TUSTransport()

    init() throws {
        interop = try InteropFixture()
        server = interop.loopbackServer(LoopbackOptions(usesRelativeLocation: true))
    }

    private func startProxy(_ name: String = "proxy", forwardingTo port: Int, _ options: NginxProxy.Options) async throws -> NginxProxy {
        try await NginxProxy.start(in: interop.folder.appending(path: name), forwardingTo: port, options: options)
    }

    private func upload(to proxy: NginxProxy, _ settings: [String: String]) -> DirectUpload {
        var upload = DirectUpload(transport, to: "\(proxy.origin)/files/", settings: settings)
        if settings["clientKey"] != nil {
            upload.endpoint.credentials = [CredentialReference(kind: .clientKeyPassphrase, source: .environment("P"))]
        }
        return upload
    }

    private func checkContent(_ receipt: TransferReceipt, _ path: FilePath) throws {
        let id = try #require(receipt.remoteURL?.split(separator: "/").last)
        let stored = FilePath(interop.folder.appending(path: "server").appending(path: "\(id).bin").path)
        #expect(try interop.content(stored) == interop.content(path))
    }

    private func close() async {
        await transport.shutdown()
        await server.stop()
    }

    @Test(arguments: ["1.1", "2"]) func authenticatesWithCertificate(version: String) async throws {
        let port = try #require(try await server.start().port)
        let client = try await ClientIdentity.make("client", in: interop.folder)
        let proxy = try await startProxy(forwardingTo: port, NginxProxy.Options(clients: client.certificate))
        let pin = try await publicKeyPin(ofCertificate: proxy.certificate)
        let other = Data(repeating: 1, count: 32).base64EncodedString()
        let upload = upload(
            to: proxy,
            client.settings.merging(["caFile": proxy.certificate, "httpVersion": version, "pinnedPublicKeys": "\(other) \(pin)"]) { $1 })
        let path = try interop.file("file", size: 3 << 20)
        try checkContent(try await upload.run(path), path)
        let requests = try await proxy.requests
        #expect(requests.map(\.method) == ["OPTIONS", "POST", "PATCH"])
        #expect(requests.allSatisfy { $0.client == "SUCCESS" })
        await close()
    }

    /// A rejected client sends no content. With the right certificate, the transport requests the server's features again.
    @Test(arguments: [false, true]) func rejectsUnknownClient(hasAnother: Bool) async throws {
        let port = try #require(try await server.start().port)
        let client = try await ClientIdentity.make("client", in: interop.folder)
        let stranger = try await ClientIdentity.make("stranger", in: interop.folder)
        let proxy = try await startProxy(forwardingTo: port, NginxProxy.Options(clients: client.certificate))
        let refused = upload(to: proxy, (hasAnother ? stranger.settings : [:]).merging(["caFile": proxy.certificate]) { $1 })
        let path = try interop.file("file", size: 300_000)
        let error = await #expect(throws: TransferError.self) { try await refused.run(path) }
        #expect(error?.failureClass == .credentials, "\(String(describing: error))")
        #expect(error?.message.contains("certificate") == true)
        #expect(server.statistics.requests.isEmpty)
        let atProxy = try await proxy.requests
        #expect(atProxy.map(\.length).reduce(0, +) < 10_000)

        let known = upload(to: proxy, client.settings.merging(["caFile": proxy.certificate]) { $1 })
        try checkContent(try await known.run(path), path)
        #expect(server.statistics.requests == ["OPTIONS": 1, "POST": 1])
        await close()
    }

    /// An existing upload resumes without a client certificate. The first request is a `HEAD`, whose response has no body and so gives no
    /// reason.
    @Test func reportsMissingCertificateOfExistingUpload() async throws {
        let port = try #require(try await server.start().port)
        let client = try await ClientIdentity.make("client", in: interop.folder)
        let proxy = try await startProxy(forwardingTo: port, NginxProxy.Options(clients: client.certificate))
        var existing = upload(to: proxy, ["caFile": proxy.certificate])
        existing.options.uploadURL = "\(proxy.origin)/files/1"
        let upload = existing
        let path = try interop.file("file", size: 9)
        let error = await #expect(throws: TransferError.self) { try await upload.run(path) }
        #expect(error?.failureClass == .credentials, "\(String(describing: error))")
        let atProxy = try await proxy.requests
        #expect(atProxy.map(\.method) == ["HEAD", "HEAD", "OPTIONS"], "HEAD is repeated, because a lost connection causes the same error")
        #expect(server.statistics.requests.isEmpty)
        await close()
    }

    @Test func rejectsServerWithOtherKey() async throws {
        let port = try #require(try await server.start().port)
        let proxy = try await startProxy(forwardingTo: port, NginxProxy.Options())
        let other = Data(repeating: 1, count: 32).base64EncodedString()
        let upload = upload(to: proxy, ["caFile": proxy.certificate, "pinnedPublicKeys": other])
        let path = try interop.file("file", size: 9)
        let error = await #expect(throws: TransferError.self) { try await upload.run(path) }
        #expect(error?.failureClass == .trust)
        #expect(
            error?.message
                == "The certificate of \(proxy.origin) has a public key that is not in pinnedPublicKeys. If the certificate is correct, add its key to that setting."
        )
        #expect(server.statistics.requests.isEmpty)
        await close()
    }

    /// The server's `Location` header names another origin. That origin receives no bytes and no certificate unless the endpoint's settings
    /// list it.
    @Test(arguments: [false, true]) func presentsCertificateOnlyToListedOrigins(isListed: Bool) async throws {
        let port = try #require(try await server.start().port)
        let client = try await ClientIdentity.make("client", in: interop.folder)
        let other = try await startProxy("other", forwardingTo: port, NginxProxy.Options(clients: client.certificate, asks: "optional"))
        let proxy = try await startProxy(forwardingTo: port, NginxProxy.Options(clients: client.certificate, location: other.origin))
        var settings = client.settings
        settings["caFile"] = try trust(proxy, other)
        settings["origins"] = isListed ? other.origin : nil
        let path = try interop.file("file", size: 3 << 20)
        if isListed {
            try checkContent(try await upload(to: proxy, settings).run(path), path)
        } else {
            let error = await #expect(throws: TransferError.self) { try await upload(to: proxy, settings).run(path) }
            #expect(error?.message.contains("origins") == true, "\(String(describing: error))")
        }
        let atProxy = try await proxy.requests
        #expect(atProxy.map { "\($0.method) \($0.client)" } == ["OPTIONS SUCCESS", "POST SUCCESS"])
        let atOther = try await other.requests
        #expect(atOther.map { "\($0.method) \($0.client)" } == (isListed ? ["PATCH SUCCESS"] : []))
        await close()
    }

    /// After a redirect, the client does not present its certificate, even to a listed origin.
    @Test(arguments: [false, true]) func doesNotPresentCertificateAfterRedirect(isListed: Bool) async throws {
        let port = try #require(try await server.start().port)
        let client = try await ClientIdentity.make("client", in: interop.folder)
        let other = try await startProxy("other", forwardingTo: port, NginxProxy.Options(clients: client.certificate, asks: "optional"))
        let proxy = try await startProxy(forwardingTo: port, NginxProxy.Options(clients: client.certificate, redirect: other.origin))
        var settings = client.settings
        settings["caFile"] = try trust(proxy, other)
        settings["origins"] = isListed ? other.origin : nil
        let path = try interop.file("file", size: 9)
        if isListed {
            try checkContent(try await upload(to: proxy, settings).run(path), path)
            let atOther = try await other.requests
            #expect(atOther.map { "\($0.method) \($0.client)" } == ["OPTIONS NONE", "POST NONE"])
        } else {
            let error = await #expect(throws: TransferError.self) { try await upload(to: proxy, settings).run(path) }
            #expect(error?.failureClass == .unreachable)
            #expect(server.statistics.requests.isEmpty)
        }
        await close()
    }

    /// Writes the certificates of several proxies to a file, and returns its path.
    private func trust(_ proxies: NginxProxy...) throws -> String {
        let file = interop.folder.appending(path: "trusted.pem")
        try proxies.map { try String(contentsOfFile: $0.certificate, encoding: .utf8) }.joined().write(
            to: file, atomically: true, encoding: .utf8)
        return file.path
    }
}
