import Foundation
import Locking
import ProcessFixture
import SystemPackage
import TransferCore
import TransportTUS
import TransportTesting

/// A fixture for downloads from an HTTP server with a folder of files, reached through a relay that breaks connections.
final class FilesFixture: ListingFixture {
    private struct Credentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("hunter2-correct-horse") }
    }

    let transport: any Transport
    let endpoint: Endpoint
    let unreachableEndpoint: Endpoint
    let credentials: any CredentialProvider = Credentials()
    let secrets = ["hunter2-correct-horse"]
    let folder: FilePath
    let options: AttemptOptions

    private let interop: InteropFixture
    private let server: URL
    private let relay: CuttingRelay
    private let versions = Locked(0)

    static func startServer(in interop: InteropFixture) async throws -> PythonProcess {
        let folder = interop.folder.appending(path: "server").path
        return try await PythonProcess.runBlocking { try PythonProcess("nginx_files.py", [folder]) }
    }

    /// - Parameter port: The port of the server. The server must outlive the fixture.
    init(
        _ interop: InteropFixture, port: Int, transport: any Transport = TUSTransport(), options: AttemptOptions = AttemptOptions(),
        endpoint: (_ rest: String, CredentialReference) -> Endpoint = { .tus("http\($0)", credentials: $1) }
    ) throws {
        self.transport = transport
        self.options = options
        relay = try CuttingRelay(to: port)
        self.endpoint = endpoint("://127.0.0.1:\(relay.port)/", .bearer(.environment("TOKEN")))
        // No process listens on port 1 (tcpmux).
        unreachableEndpoint = endpoint("://127.0.0.1:1/files/", .bearer(.environment("TOKEN")))
        folder = FilePath(interop.folder.appending(path: "local").path)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        self.interop = interop
        server = interop.folder.appending(path: "server")
    }

    func close() async {
        await transport.shutdown()
        relay.stop()
    }

    /// All requests to which nginx has responded: their methods, statuses, ranges and numbers of content bytes.
    var requests: [[String]] {
        get throws {
            try String(contentsOf: server.appending(path: "access.log"), encoding: .utf8).split(separator: "\n").map {
                $0.split(separator: " ").map(String.init)
            }
        }
    }

    func provide(_ content: Data, as path: RemotePath) async throws {
        let file = server.appending(path: "files").appending(path: path.description)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try content.write(to: file)
        // nginx derives ETags from the size and the modification time in whole seconds, so each version gets a different time.
        let version = versions.withLock { version in
            version += 1
            return version
        }
        let time = Date(timeIntervalSince1970: 1_700_000_000 + Double(version))
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
    }

    func makeFolder(_ path: RemotePath) async throws {
        let folder = server.appending(path: "files").appending(path: path.description)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    func cut(afterBytes bytes: Int64) async throws { relay.cut(.fromServer, inAllAfter: Int(bytes)) }

    // The protocol requires these functions. No test uploads with this fixture.
    func storedContent(of path: RemotePath) async throws -> Data? { nil }
    func isComplete(_ path: RemotePath) async throws -> Bool { false }
}
