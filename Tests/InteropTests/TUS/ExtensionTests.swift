import Foundation
import Logging
import SystemPackage
import Testing
import TransferCore
import TransportTUS

@Suite struct ExtensionTests {
    private struct NoCredentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("") }
    }

    private let interop: InteropFixture
    private let transport = TUSTransport()

    init() throws {
        interop = try InteropFixture()
    }

    private func startServer(_ kind: RealServer.Kind = .resumableUpload, options: String = "{}") async throws -> RealServer {
        try await RealServer.start(kind, in: interop.folder.appending(path: "server"), options: options)
    }

    private func upload(
        _ path: FilePath, to server: RealServer, settings: [String: String] = [:], _ options: AttemptOptions
    ) async throws -> TransferReceipt {
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: Endpoint(transport: .tus, address: server.endpoint, settings: settings),
            source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)), remotePath: try RemotePath("file.bin"),
            options: options, credentials: NoCredentials(), logger: Logger(label: "test"))
        return try await transport.perform(attempt, reporting: AttemptReporter(progress: { _, _ in }, checkpoint: { _ in }))
    }

    private func check(_ receipt: TransferReceipt, _ path: FilePath, on server: RealServer) throws {
        #expect(try server.content(of: try #require(receipt.remoteURL), named: "file.bin") == (try interop.content(path)))
    }

    @Test(arguments: [("[\"md5\", \"sha256\"]", "sha256:"), ("[\"sha1\"]", "sha1:"), ("[\"md5\"]", "md5:")])
    func verifiesChecksums(algorithms: String, prefix: String) async throws {
        let server = try await startServer(options: "{\"checksum_algorithms\": \(algorithms)}")
        let path = try interop.file("large", size: 20 << 20)
        let receipt = try await upload(path, to: server, AttemptOptions(verification: .checksum))
        #expect(receipt.checksum?.hasPrefix(prefix) == true)
        try check(receipt, path, on: server)
        #expect(try server.requests.map(\.method) == ["OPTIONS", "POST", "PATCH", "PATCH", "PATCH"])
        await transport.shutdown()
    }

    @Test func sendsChecksumInTrailer() async throws {
        let server = try await startServer(options: "{\"checksum_algorithms\": [\"sha256\"], \"supports_checksum_trailer\": true}")
        let path = try interop.file("large", size: 20 << 20)
        let receipt = try await upload(path, to: server, AttemptOptions(verification: .checksum))
        #expect(receipt.checksum?.hasPrefix("sha256:") == true)
        try check(receipt, path, on: server)
        #expect(try server.requests.map(\.method) == ["OPTIONS", "POST", "PATCH", "PATCH"], "the first PATCH tests trailers")
        await transport.shutdown()
    }

    @Test func readsFileBackFromServerWithoutChecksums() async throws {
        let server = try await startServer(options: "{\"checksum_algorithms\": [], \"enable_downloads\": true}")
        let path = try interop.file("large", size: 5 << 20)
        let receipt = try await upload(path, to: server, AttemptOptions(verification: .checksum))
        #expect(receipt.checksum?.hasPrefix("sha256:") == true)
        try check(receipt, path, on: server)
        await transport.shutdown()
    }

    @Test func doesNotSendUnverifiableFile() async throws {
        let server = try await startServer(options: "{\"checksum_algorithms\": []}")
        let path = try interop.file("large", size: 5 << 20)
        let error = await #expect(throws: TransferError.self) {
            try await upload(path, to: server, AttemptOptions(verification: .checksum))
        }
        #expect(error?.failureClass == .unsupported)
        // The first GET does not show whether the server offers downloads, because the upload is still incomplete. The transport therefore
        // creates a second upload, which is empty and complete, and sends a GET for it.
        #expect(try server.requests.map(\.method) == ["OPTIONS", "POST", "GET", "POST", "GET", "DELETE", "DELETE"])
        await transport.shutdown()
    }

    @Test(arguments: [RealServer.Kind.tuspyserver, .aiohttpTUS])
    func doesNotSendFileUnverifiableByOtherServers(kind: RealServer.Kind) async throws {
        let server = try await startServer(kind)
        let path = try interop.file("large", size: 5 << 20)
        let error = await #expect(throws: TransferError.self) {
            try await upload(path, to: server, AttemptOptions(verification: .checksum))
        }
        #expect(error?.failureClass == .unsupported)
        #expect(
            error?.message
                == "The server http://127.0.0.1:\(server.port) does not compare checksums and does not allow the download of uploads, so uploads can't be verified. Use --verify size."
        )
        #expect(error?.cause == "GET returned 405")
        #expect(try server.requests.map(\.method) == ["OPTIONS", "POST", "GET", "DELETE"])
        #expect(try server.storedFiles.isEmpty)
        await transport.shutdown()
    }

    @Test(arguments: [RealServer.Kind.resumableUpload, .tuspyserver], [2, 4, 7])
    func concatenatesSegments(kind: RealServer.Kind, count: Int) async throws {
        let server = try await startServer(kind)
        let path = try interop.file("large", size: 7 << 20 + 5)
        let receipt = try await upload(
            path, to: server, settings: ["parallelThreshold": "1000000"], AttemptOptions(segmentsPerFile: count))
        try check(receipt, path, on: server)
        #expect(receipt.warnings.isEmpty)
        let requests = try server.requests
        #expect(requests.count { $0.concat == "partial" } == count)
        #expect(requests.count { $0.concat?.hasPrefix("final;/") == true } == 1)
        #expect(requests.count { $0.method == "PATCH" } == count)
        // tuspyserver has already removed the partial uploads, and responds with 404.
        #expect(requests.count { $0.method == "DELETE" } == count)
        #expect(try server.storedFiles.count { !$0.contains("/") && !$0.hasSuffix(".db") } == 1)
        await transport.shutdown()
    }

    @Test func sendsOneUploadWithoutConcatenation() async throws {
        let server = try await startServer(.aiohttpTUS, options: "{\"client_max_size\": 100000000}")
        let path = try interop.file("large", size: 7 << 20 + 5)
        try check(
            try await upload(path, to: server, settings: ["parallelThreshold": "1000000"], AttemptOptions(segmentsPerFile: 4)), path,
            on: server)
        #expect(try server.requests.map(\.method) == ["OPTIONS", "POST", "PATCH"])
        await transport.shutdown()
    }

    @Test func adaptsToMaximumChunkSize() async throws {
        let server = try await startServer(options: "{\"max_chunk_size\": 1000000}")
        let path = try interop.file("large", size: 5 << 20)
        let receipt = try await upload(path, to: server, AttemptOptions())
        try check(receipt, path, on: server)
        await transport.shutdown()
    }

    @Test func completesUploadWithExpiry() async throws {
        let server = try await startServer(options: "{\"upload_expiry\": 3600}")
        let path = try interop.file("large", size: 3 << 20)
        try check(try await upload(path, to: server, AttemptOptions(chunkSize: 1 << 20)), path, on: server)
        await transport.shutdown()
    }
}
