import Foundation
import Logging
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

@Suite struct HTTPSchemeTests {
    private struct NoCredentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("") }
    }

    private let interop: InteropFixture
    private let transport = HTTPTransport()

    init() throws {
        interop = try InteropFixture()
    }

    private func failure(_ size: Int, at endpoint: Endpoint) async throws -> TransferError? {
        let path = try interop.file("file-\(size)", size: size)
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: endpoint, source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)),
            remotePath: try RemotePath("file.mov"), credentials: NoCredentials(), logger: Logger(label: "test"))
        let reporter = AttemptReporter(progress: { _, _ in }, checkpoint: { _ in })
        return await #expect(throws: TransferError.self) { try await transport.perform(attempt, reporting: reporter) }
    }

    @Test func rejectsHTTPToNginxWithTLS() async throws {
        let proxy = try await NginxProxy.start(in: interop.folder.appending(path: "proxy"), forwardingTo: 1)
        defer { withExtendedLifetime(proxy) {} }
        for mode in ["put", "form"] {
            let error = try await failure(9, at: .http("http+\(mode)://127.0.0.1:\(proxy.port)/"))
            #expect(error?.failureClass == .unsupported)
            #expect(error?.message.contains("change http to https") == true)
        }
        let checked = await #expect(throws: TransferError.self) {
            try await transport.check(.http("http+put://127.0.0.1:\(proxy.port)/"), credentials: NoCredentials())
        }
        #expect(checked?.message.contains("change http to https") == true)
        await transport.shutdown()
    }

    @Test(arguments: PlainServer.Kind.allCases) func rejectsHTTPSToServerWithoutTLS(kind: PlainServer.Kind) async throws {
        let server = try await PlainServer.start(kind, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let error = try await failure(9, at: .http("https+put://127.0.0.1:\(server.port)/"))
        #expect(error?.code == .notThisProtocol)
        #expect(error?.message.contains("change https to http") == true, "\(error?.description ?? "")")
        await transport.shutdown()
    }

    /// Flask responds with success and closes the connection without reading the body.
    @Test func rejectsSuccessBeforeEndOfBody() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        let relay = try CuttingRelay(to: server.port)
        defer { relay.stop() }
        let error = try #require(try await failure(30 << 20, at: .http("http+form://127.0.0.1:\(relay.port)/hasty")))
        #expect(error.failureClass == .permanent && error.code == .invalidResponse, "\(error)")
        #expect(relay.connectionCount == 1, "the server may have recorded the upload, so it is not repeated")
        await transport.shutdown()
    }

    @Test func rejectsAddressThatAcceptsNoUploads() async throws {
        let server = try await PlainServer.start(.form, in: interop.folder.appending(path: "server"))
        defer { withExtendedLifetime(server) {} }
        for (mode, path) in [("put", "/nowhere/"), ("form", "/nowhere"), ("put", "/upload"), ("form", "/page/done")] {
            let error = try await failure(1_000_000, at: .http("http+\(mode)://127.0.0.1:\(server.port)\(path)"))
            #expect(error?.failureClass == .unsupported, "\(mode) \(path)")
            #expect(error?.message.contains("check") == true)
        }
        await transport.shutdown()
    }
}
