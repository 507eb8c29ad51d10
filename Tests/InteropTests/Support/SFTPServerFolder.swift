import Foundation
import Locking
import Logging
import SSHFixture
import SystemPackage
import TransferCore
import TransportSFTP

/// An OpenSSH server with a folder for its files and a folder for local files. Tests can inspect both folders.
final class SFTPServerFolder: Sendable {
    let server: SSHServerProcess
    let transport: SFTPTransport
    let files: URL
    let local: URL

    /// - Parameters:
    ///   - options: Lines for the server's configuration (sshd_config(5)).
    ///   - subsystems: Shell scripts by subsystem name; see ``SSHServerProcess``.
    ///   - policy: The connection pool policy of the transport.
    init(options: [String] = [], subsystems: [String: String] = [:], policy: PoolPolicy = PoolPolicy()) async throws {
        transport = SFTPTransport(policy: policy)
        server = try await SSHServerProcess.start(options: options, subsystems: subsystems)
        files = server.folder.appending(path: "files")
        local = server.folder.appending(path: "local")
        for folder in [files, local] { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
    }

    func close() async {
        await transport.shutdown()
        server.stop()
    }

    /// - Parameter port: The port of a relay, or nil for the server's port.
    func endpoint(port: UInt16? = nil, _ settings: [String: String] = [:]) throws -> Endpoint {
        Endpoint(
            transport: .sftp, address: "sftp://\(server.user)@127.0.0.1:\(port ?? server.port)\(files.path)/",
            settings: ["identity": server.userKey, "agent": "none", "knownHosts": try server.knownHosts(port: port)]
                .merging(settings) { $1 })
    }

    func source(_ name: String) throws -> UploadSource {
        let path = FilePath(local.appending(path: name).path)
        return UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
    }

    func destination(_ name: String) -> DownloadDestination {
        DownloadDestination(root: FilePath(local.path), name: FilePath(name), partName: FilePath(".\(name).part"))
    }

    /// Performs one attempt to upload or download a file.
    ///
    /// - Parameters:
    ///   - name: The file's name on the server.
    ///   - checkpoints: Receives the checkpoints that the transport saves.
    ///   - progress: Called with the number of sent bytes.
    func transfer(
        _ payload: FileAttempt.Payload, _ name: String, at endpoint: Endpoint? = nil, from checkpoint: Checkpoint? = nil,
        _ options: AttemptOptions = AttemptOptions(), recording checkpoints: Locked<[Checkpoint]> = Locked([]),
        progress: @escaping @Sendable (Int64) -> Void = { _ in }
    ) async throws -> TransferReceipt {
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: try endpoint ?? self.endpoint(), payload: payload, remotePath: try RemotePath(name),
            checkpoint: checkpoint, options: options, credentials: NoSecrets(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let reporter = AttemptReporter(
            progress: { sent, _ in progress(sent) }, checkpoint: { checkpoint in checkpoints.withLock { $0.append(checkpoint) } })
        return try await transport.perform(attempt, reporting: reporter)
    }
}

private struct NoSecrets: CredentialProvider {
    func secret(for reference: CredentialReference) async throws -> Secret { Secret("") }
}

extension Data {
    /// Returns content that contains its own positions as numbers, so that tests detect repeated or misplaced bytes.
    static func nonRepeating(_ size: Int) -> Data {
        var data = Data(capacity: size + 1000)
        while data.count < size { data += Data("\(data.count),".utf8) + Data(repeating: UInt8(ascii: "."), count: 900) }
        return data.prefix(size)
    }
}
