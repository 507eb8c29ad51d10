import Foundation
import Logging
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

@Suite struct PlainHTTPRefusalTests {
    private struct Passphrase: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret(ClientIdentity.passphrase) }
    }

    private let interop: InteropFixture
    private let transport = HTTPTransport()

    init() throws {
        interop = try InteropFixture()
    }

    private func startServer(_ kind: PlainServer.Kind, largestBody: Int = 1 << 30) async throws -> PlainServer {
        try await PlainServer.start(kind, in: interop.folder.appending(path: "server"), largestBody: largestBody)
    }

    private func startProxy(
        _ name: String = "proxy", forwardingTo port: Int, largestBody: String = "100m", _ options: NginxProxy.Options = NginxProxy.Options()
    ) async throws -> NginxProxy {
        try await NginxProxy.start(in: interop.folder.appending(path: name), forwardingTo: port, largestBody: largestBody, options: options)
    }

    private func upload(_ path: FilePath, to endpoint: Endpoint, number: Int = 1) async throws -> TransferReceipt {
        let attempt = FileAttempt(
            transferID: "t-1", number: number, endpoint: endpoint,
            source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)), remotePath: try RemotePath("file.mov"),
            credentials: Passphrase(), logger: Logger(label: "test"))
        return try await transport.perform(attempt, reporting: AttemptReporter(progress: { _, _ in }, checkpoint: { _ in }))
    }

    private func refusal(of path: FilePath, at endpoint: Endpoint, number: Int = 1) async -> TransferError? {
        await #expect(throws: TransferError.self) { try await upload(path, to: endpoint, number: number) }
    }

    /// The number of bytes that nginx received in each request.
    private func received() throws -> [Int] {
        try String(contentsOf: interop.folder.appending(path: "server/access.log"), encoding: .utf8).split(separator: "\n").compactMap {
            $0.split(separator: " ").last.flatMap { Int($0) }
        }
    }

    @Test func doesNotSendBodyTooLargeForNginx() async throws {
        let server = try await startServer(.put, largestBody: 1 << 20)
        defer { withExtendedLifetime(server) {} }
        let error = await refusal(of: try interop.file("large", size: 30 << 20), at: .http(server.address()))
        #expect(error?.code == .tooLarge)
        #expect(try received().reduce(0, +) < 10_000)
        await transport.shutdown()
    }

    /// The small file is sent without `Expect: 100-continue`, so the transport is already sending the body when the response arrives.
    @Test func readsNginxErrorDuringBody() async throws {
        let server = try await startServer(.put, largestBody: 1_000)
        defer { withExtendedLifetime(server) {} }
        let path = try interop.file("small", size: 200_000)
        #expect(await refusal(of: path, at: .http(server.address()))?.code == .tooLarge)
        #expect(await refusal(of: path, at: .http(server.address()), number: 2)?.code == .tooLarge)
        await transport.shutdown()
    }

    @Test(arguments: [100_000, 30 << 20]) func readsFlaskErrorDuringBody(size: Int) async throws {
        let server = try await startServer(.form)
        defer { withExtendedLifetime(server) {} }
        let error = await refusal(of: try interop.file("file", size: size), at: .http("http+form://127.0.0.1:\(server.port)/refused"))
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .forbidden)
        #expect(error?.cause?.contains("no reels on Sundays") == true)
        await transport.shutdown()
    }

    @Test(arguments: ["1.1", "2"], [false, true]) func sendsFormsOverTLS(version: String, streams: Bool) async throws {
        let server = try await startServer(.form)
        defer { withExtendedLifetime(server) {} }
        var options = NginxProxy.Options()
        options.streams = streams
        let proxy = try await startProxy(forwardingTo: server.port, largestBody: "10m", options)
        let endpoint = Endpoint(
            transport: .http, address: "https+form://127.0.0.1:\(proxy.port)/upload?path={path}",
            settings: ["caFile": proxy.certificate, "httpVersion": version])
        let path = try interop.file("file", size: 5 << 20)
        #expect(try await upload(path, to: endpoint).serverResponse?.status == 201)
        #expect(try server.content(of: RemotePath("file.mov")) == interop.content(path))
        let error = await refusal(of: try interop.file("large", size: 20 << 20), at: endpoint)
        #expect(error?.code == .tooLarge)
        let requests = try await proxy.requests
        #expect(requests.map(\.status) == [201, 413])
        #expect((requests.last?.length ?? 0) < 10_000, "the transport announced the body, but did not send it")
        await transport.shutdown()
    }

    @Test func retriesIfProxyCannotReachServer() async throws {
        // No process listens on port 1 (tcpmux).
        let proxy = try await startProxy(forwardingTo: 1)
        let endpoint = Endpoint.http(
            "https+put://127.0.0.1:\(proxy.port)/", options: HTTPOptions(requests: RequestOptions(caFile: proxy.certificate)))
        #expect(await refusal(of: try interop.file("file", size: 3 << 20), at: endpoint)?.failureClass == .transient)
        await transport.shutdown()
    }

    @Test(arguments: PlainServer.Kind.allCases, [false, true])
    func followsRedirectToListedOrigin(kind: PlainServer.Kind, isListed: Bool) async throws {
        let server = try await startServer(kind)
        defer { withExtendedLifetime(server) {} }
        let other = try await startProxy("other", forwardingTo: server.port)
        var options = NginxProxy.Options()
        options.redirect = other.origin
        let proxy = try await startProxy(forwardingTo: server.port, options)
        let trusted = interop.folder.appending(path: "trusted.pem")
        try [proxy, other].map { try String(contentsOfFile: $0.certificate, encoding: .utf8) }.joined().write(
            to: trusted, atomically: true, encoding: .utf8)
        var settings = ["caFile": trusted.path]
        settings["origins"] = isListed ? other.origin : nil
        let address = server.site.address(port: proxy.port).replacing("http+", with: "https+")
        let endpoint = Endpoint(transport: .http, address: address, settings: settings)
        let path = try interop.file("file", size: 3 << 20)
        if isListed {
            #expect(try await upload(path, to: endpoint).bytes == 3 << 20)
            #expect(try server.content(of: RemotePath("file.mov")) == interop.content(path))
        } else {
            let error = await refusal(of: path, at: endpoint)
            #expect(error?.message.contains(other.origin) == true)
            #expect(try server.content(of: RemotePath("file.mov")) == nil)
        }
        await transport.shutdown()
    }

    // MARK: Client certificates

    @Test(arguments: ["https+put", "https+form"]) func requiresClientCertificate(scheme: String) async throws {
        let server = try await startServer(.put)
        defer { withExtendedLifetime(server) {} }
        let client = try await ClientIdentity.make("client", in: interop.folder)
        var options = NginxProxy.Options()
        options.clients = client.certificate
        let proxy = try await startProxy(forwardingTo: server.port, options)
        var endpoint = Endpoint.http(
            "\(scheme)://127.0.0.1:\(proxy.port)/in/", options: HTTPOptions(requests: RequestOptions(caFile: proxy.certificate)))
        let path = try interop.file("file", size: 300_000)
        let error = await refusal(of: path, at: endpoint)
        #expect(error?.failureClass == .credentials)
        #expect(error?.message.contains("certificate") == true)
        let refused = endpoint
        let checked = await #expect(throws: TransferError.self) { try await transport.check(refused, credentials: Passphrase()) }
        #expect(checked?.failureClass == .credentials)
        endpoint.settings.merge(client.settings) { $1 }
        endpoint.credentials = [CredentialReference(kind: .clientKeyPassphrase, source: .environment("P"))]
        _ = try await transport.check(endpoint, credentials: Passphrase())
        if scheme == "https+put" {
            #expect(try await upload(path, to: endpoint).bytes == 300_000)
            #expect(try server.content(of: RemotePath("in/file.mov")) == interop.content(path))
        }
        await transport.shutdown()
    }

    /// Uploads to a signed URL for one file. The URL's origin differs from the endpoint's.
    @Test(arguments: [false, true]) func presentsCertificateOnlyToListedOrigins(isListed: Bool) async throws {
        let server = try await startServer(.put)
        defer { withExtendedLifetime(server) {} }
        let client = try await ClientIdentity.make("client", in: interop.folder)
        var options = NginxProxy.Options()
        options.clients = client.certificate
        options.asks = "optional"
        let other = try await startProxy("other", forwardingTo: server.port, options)
        var settings = client.settings.merging(["caFile": other.certificate]) { $1 }
        settings["origins"] = isListed ? other.origin : nil
        let endpoint = Endpoint(
            transport: .http, address: "https+put://127.0.0.1:1/",
            credentials: [CredentialReference(kind: .clientKeyPassphrase, source: .environment("P"))], settings: settings)
        let path = try interop.file("file", size: 9)
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: endpoint, source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)),
            remotePath: try RemotePath("file.mov"), options: AttemptOptions(uploadURL: "\(other.origin)/signed?signature=0123456789abcdef"),
            credentials: Passphrase(), logger: Logger(label: "test"))
        let reporter = AttemptReporter(progress: { _, _ in }, checkpoint: { _ in })
        #expect(try await transport.perform(attempt, reporting: reporter).bytes == 9)
        let requests = try await other.requests
        #expect(requests.map(\.client) == [isListed ? "SUCCESS" : "NONE"])
        await transport.shutdown()
    }
}
