import Foundation
import ProcessFixture
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransportTUS
import TransportTesting

@Suite struct ConformanceTests {
    @Test(arguments: TransportPromise.allCases)
    func keepsUploadPromise(_ promise: TransportPromise) async throws {
        let fixture = try await LoopbackFixture()
        do {
            try await promise.verify(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }

    @Test(arguments: StreamPromise.allCases)
    func keepsStreamPromise(_ promise: StreamPromise) async throws {
        let fixture = try await LoopbackFixture(isRelayed: true)
        do {
            try await promise.verify(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }

    /// Uses the IETF protocol *Resumable Uploads for HTTP*.
    @Test(arguments: TransportPromise.allCases, ResourceLoopbackTests.dialects)
    func keepsUploadPromiseWithResources(_ promise: TransportPromise, dialect: LoopbackDialect) async throws {
        let fixture = try await LoopbackFixture(LoopbackOptions(dialect: dialect))
        do {
            try await promise.verify(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }

    /// Uses the IETF protocol.
    @Test(arguments: StreamPromise.allCases, ResourceLoopbackTests.dialects)
    func keepsStreamPromiseWithResources(_ promise: StreamPromise, dialect: LoopbackDialect) async throws {
        let fixture = try await LoopbackFixture(LoopbackOptions(dialect: dialect), isRelayed: true)
        do {
            try await promise.verify(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }

    /// Uses a server that requires the length when an upload is created.
    @Test(arguments: StreamPromise.allCases)
    func keepsStreamPromiseWithoutDeferredLength(_ promise: StreamPromise) async throws {
        let fixture = try await LoopbackFixture(LoopbackOptions(extensions: [.termination]), isRelayed: true)
        do {
            try await promise.verify(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }

    @Test(arguments: DownloadPromise.allCases)
    func keepsDownloadPromise(_ promise: DownloadPromise) async throws {
        let interop = try InteropFixture()
        let server = try await FilesFixture.startServer(in: interop)
        let fixture = try FilesFixture(interop, port: server.port)
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

private struct LoopbackFixture: TransportFixture {
    struct Credentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("hunter2-correct-horse") }
    }

    let interop: InteropFixture
    let server: TUSLoopbackServer
    let transport: any Transport = TUSTransport()
    let endpoint: Endpoint
    let unreachableEndpoint: Endpoint
    let credentials: any CredentialProvider = Credentials()
    let secrets = ["hunter2-correct-horse"]
    let folder: FilePath

    /// Breaks connections in tests of streams, because the upload of a stream consists of many requests. Other tests inject faults into the
    /// server.
    private let relay: CuttingRelay?

    init(_ options: LoopbackOptions = LoopbackOptions(), isRelayed: Bool = false) async throws {
        interop = try InteropFixture()
        server = TUSLoopbackServer(folder: FilePath(interop.folder.appending(path: "server").path), options: options)
        let address = try await server.start()
        relay = isRelayed ? try CuttingRelay(to: address.port ?? 0) : nil
        let port = relay.map { Int($0.port) } ?? address.port ?? 0
        endpoint = .tus(
            "http://127.0.0.1:\(port)\(address.path)/", credentials: .bearer(.environment("TOKEN")),
            options: TUSOptions(dialect: options.dialect == .tus ? .auto : .ietf))
        // No process listens on port 1 (tcpmux).
        unreachableEndpoint = .tus("http://127.0.0.1:1/files/", credentials: .bearer(.environment("TOKEN")))
        folder = FilePath(interop.folder.appending(path: "sources").path)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    }

    func close() async {
        await transport.shutdown()
        relay?.stop()
        await server.stop()
    }

    private func file(_ path: RemotePath) -> FilePath? {
        server.storedFiles(named: String(decoding: path.lastComponent, as: UTF8.self)).last
    }

    func storedContent(of path: RemotePath) async throws -> Data? {
        try file(path).map { try Data(contentsOf: URL(fileURLWithPath: $0.string)) }
    }

    func storedSize(of path: RemotePath) async throws -> Int64 {
        guard let file = file(path) else { return 0 }
        return try FileManager.default.attributesOfItem(atPath: file.string)[.size] as? Int64 ?? 0
    }

    func isComplete(_ path: RemotePath) async throws -> Bool {
        let name = String(decoding: path.lastComponent, as: UTF8.self)
        return server.statistics.uploads.contains { $0.filename == name && $0.isComplete }
    }

    func cut(afterBytes bytes: Int64) async throws {
        if let relay { relay.cut(.fromClient, inAllAfter: Int(bytes)) } else { server.inject(.cut(afterBodyBytes: bytes)) }
    }
}
