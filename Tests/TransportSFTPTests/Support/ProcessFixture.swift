import Foundation
import Locking
import SystemPackage
import TransferCore
import TransportSFTP
import TransportSupport
import TransportTesting

/// A fixture with a folder on OpenSSH's SFTP server. Tests can break the connections to the server.
final class ProcessFixture: DownloadingFixture {
    private struct Credentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("hunter2-correct-horse") }
    }

    let connector: ProcessConnector
    let transport: any Transport
    let endpoint: Endpoint
    let unreachableEndpoint: Endpoint
    let credentials: any CredentialProvider = Credentials()
    let secrets = ["hunter2-correct-horse"]
    let folder: FilePath
    let server: URL
    private let root: URL
    private let versions = Locked(0)

    private let direction: CutPlan.Direction

    /// - Parameters:
    ///   - direction: The direction whose bytes ``cut(afterBytes:)`` counts.
    ///   - parent: The folder that will contain the server's folder.
    init(
        cutting direction: CutPlan.Direction = .fromClient, options: [String] = [], commands: (any CommandRunner)? = nil,
        disks: DiskThreads = DiskThreads(limit: 4), in parent: URL = FileManager.default.temporaryDirectory
    ) throws {
        self.direction = direction
        connector = ProcessConnector(options, commands: commands)
        root = parent.appending(path: "sftp-\(UUID().uuidString)")
        server = root.appending(path: "server")
        folder = FilePath(root.appending(path: "local").path)
        for url in [server, root.appending(path: "local")] {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }
        transport = SFTPTransport(connector: connector, disks: disks)
        endpoint = .sftp("sftp://me@pipe\(server.path)/", credentials: .password(.environment("PASSWORD")))
        unreachableEndpoint = .sftp("sftp://me@refused\(server.path)/", credentials: .password(.environment("PASSWORD")))
    }

    func close() async {
        await transport.shutdown()
        for server in connector.servers { await server.close() }
        try? FileManager.default.removeItem(at: root)
    }

    // MARK: Requirements of the conformance suite

    /// Returns the path of the complete file, or of its part file if the upload is incomplete; nil if neither exists.
    private func file(_ path: RemotePath) async throws -> FilePath? {
        // Waits for the server process of each broken connection, which processes all received bytes before it exits.
        for server in connector.servers where !server.client.isOpen { await server.close() }
        let final = FilePath(server.path).appending(path.bytes)
        if final.exists { return final }
        let transferID = "conformance-\(path.bytes.reduce(UInt64(5381)) { $0 &* 33 &+ UInt64($1) })"
        let partFile = FilePath(server.path).appending(".tq-\(transferID).part")
        return partFile.exists ? partFile : nil
    }

    func storedContent(of path: RemotePath) async throws -> Data? {
        try await file(path).map { try $0.content() }
    }

    func isComplete(_ path: RemotePath) async throws -> Bool {
        FilePath(server.path).appending(path.bytes).exists
    }

    func cut(afterBytes bytes: Int64) async throws {
        connector.cuts.cut(direction, after: Int(bytes))
    }

    func provide(_ content: Data, as path: RemotePath) async throws {
        let file = server.appending(path: path.description)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try content.write(to: file)
        // The transport identifies versions by the size and the modification time in whole seconds, so each version gets a different time.
        let version = versions.withLock { version in
            version += 1
            return version
        }
        let time = Date(timeIntervalSince1970: 1_700_000_000 + Double(version))
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
    }
}

extension FilePath {
    func appending(_ name: [UInt8]) -> FilePath { FilePath(bytes: bytes + [UInt8(ascii: "/")] + name) }

    /// Whether a readable file exists at this path.
    var exists: Bool {
        guard let file = try? FileDescriptor.open(self, .readOnly, options: .closeOnExec) else { return false }
        try? file.close()
        return true
    }

    func content() throws -> Data {
        let file = try FileDescriptor.open(self, .readOnly, options: .closeOnExec)
        return try file.closeAfter { try FileHandle(fileDescriptor: file.rawValue, closeOnDealloc: false).readToEnd() ?? Data() }
    }
}
