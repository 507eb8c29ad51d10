import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransportHTTP
import TransportTesting

/// Runs the conformance suite against the transport for plain HTTP, whose uploads restart from byte 0 instead of resuming.
@Suite struct PlainHTTPConformanceTests {
    @Test(arguments: TransportPromise.allCases)
    func keepsUploadPromise(_ promise: TransportPromise) async throws {
        try await PlainFixture.with(.put) { try await promise.verify($0) }
    }

    /// One server for all promises, because the server starts slowly.
    @Test func keepsAllPromisesWithForms() async throws {
        let interop = try InteropFixture()
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        for promise in TransportPromise.allCases { try await PlainFixture.with(server.site, in: interop) { try await promise.verify($0) } }
        for promise in StreamPromise.allCases { try await PlainFixture.with(server.site, in: interop) { try await promise.verify($0) } }
    }

    @Test(arguments: StreamPromise.allCases)
    func keepsStreamPromise(_ promise: StreamPromise) async throws {
        try await PlainFixture.with(.put) { try await promise.verify($0) }
    }

    @Test(arguments: DownloadPromise.allCases, [1, 4])
    func keepsDownloadPromise(_ promise: DownloadPromise, parallel: Int) async throws {
        let interop = try InteropFixture()
        let server = try await FilesFixture.startServer(in: interop)
        let fixture = try FilesFixture(
            interop, port: server.port, transport: HTTPTransport(), options: AttemptOptions(segmentsPerFile: parallel),
            endpoint: {
                .http("http+get\($0)", credentials: $1, options: HTTPOptions(requests: RequestOptions(parallelThreshold: 100_000)))
            })
        do {
            try await promise.verify(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
        withExtendedLifetime(server) {}
    }
}

/// An upload server behind a relay that breaks connections.
private struct PlainFixture: TransportFixture {
    struct Credentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("hunter2-correct-horse") }
    }

    let interop: InteropFixture
    let site: PlainSite
    let transport: any Transport = HTTPTransport()
    let endpoint: Endpoint
    let unreachableEndpoint: Endpoint
    let credentials: any CredentialProvider = Credentials()
    let secrets = ["hunter2-correct-horse"]
    let folder: FilePath
    let resumption = UploadResumption.fromStart
    private let relay: CuttingRelay

    static func with(_ kind: PlainServer.Kind, _ body: (PlainFixture) async throws -> Void) async throws {
        let interop = try InteropFixture()
        let server = try await PlainServer.start(kind, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        try await with(server.site, in: interop, body)
    }

    static func with(_ site: PlainSite, in interop: InteropFixture, _ body: (PlainFixture) async throws -> Void) async throws {
        let fixture = try PlainFixture(interop, site)
        do {
            try await body(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }

    private init(_ interop: InteropFixture, _ site: PlainSite) throws {
        self.interop = interop
        self.site = site
        relay = try CuttingRelay(to: site.port)
        endpoint = .http(site.address(port: Int(relay.port)), credentials: .bearer(.environment("TOKEN")))
        // No process listens on port 1 (tcpmux).
        unreachableEndpoint = .http(site.address(port: 1), credentials: .bearer(.environment("TOKEN")))
        folder = FilePath(interop.folder.appending(path: "sources").path)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    }

    private func close() async {
        await transport.shutdown()
        relay.stop()
    }

    func storedContent(of path: RemotePath) async throws -> Data? { try site.content(of: path) }

    func isComplete(_ path: RemotePath) async throws -> Bool { try site.content(of: path) != nil }

    func cut(afterBytes bytes: Int64) async throws { relay.cut(.fromClient, inAllAfter: Int(bytes)) }
}
