import Foundation
import SystemPackage
import TransferCore
import TransportTUS
import TransportTesting

/// Debian's nginx with a folder of files to download, behind a relay that breaks connections.
final class FilesFixture: DownloadingFixture {
    private struct Credentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("hunter2-correct-horse") }
    }

    let transport: any Transport = TUSTransport()
    let endpoint: Endpoint
    let unreachableEndpoint: Endpoint
    let credentials: any CredentialProvider = Credentials()
    let secrets = ["hunter2-correct-horse"]
    let folder: FilePath

    private let workshop: Workshop
    private let server: URL
    private let process: PythonProcess
    private let relay: CuttingRelay
    private let versions = Locked(0)

    init() async throws {
        let workshop = try Workshop()
        let server = workshop.folder.appending(path: "server")
        process = try await PythonProcess.start { try PythonProcess("nginx_files.py", [server.path]) }
        relay = try CuttingRelay(to: process.port)
        endpoint = .tus("http://127.0.0.1:\(relay.port)/", credentials: .bearer(.environment("TOKEN")))
        // Port 1 (tcpmux) is one that nobody listens on.
        unreachableEndpoint = .tus("http://127.0.0.1:1/files/", credentials: .bearer(.environment("TOKEN")))
        folder = FilePath(workshop.folder.appending(path: "local").path)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        self.workshop = workshop
        self.server = server
    }

    func close() async {
        await transport.shutdown()
        relay.stop()
    }

    /// All requests that were answered: their methods, statuses, ranges, and how many bytes of content were sent.
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
        // nginx tells versions by size and second.
        let version = versions.withLock { version in
            version += 1
            return version
        }
        let time = Date(timeIntervalSince1970: 1_700_000_000 + Double(version))
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
    }

    func cut(afterBytes bytes: Int64) async throws { relay.cutAnswer(afterBytes: Int(bytes)) }

    // Nothing is uploaded here.
    func storedContent(of path: RemotePath) async throws -> Data? { nil }
    func isComplete(_ path: RemotePath) async throws -> Bool { false }
}
