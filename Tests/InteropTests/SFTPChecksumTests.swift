import Foundation
import Logging
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

/// How OpenSSH's server lets checksums be computed, or does not.
@Suite(.timeLimit(.minutes(2)))
struct SFTPChecksumTests {
    /// SHA-256 of `abc` (FIPS 180-4, and its examples).
    private static let digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    @Test func aShellComputesThem() async throws {
        try await expect(warnings: 0)
    }

    /// The server says that it runs the command, and runs another.
    @Test func anAccountWithoutAShellHasItsFilesReadBack() async throws {
        try await expect(warnings: 1, options: ["ForceCommand internal-sftp"])
    }

    @Test func aServerWithoutAChannelToSpareHasItsFilesReadBack() async throws {
        try await expect(warnings: 1, options: ["MaxSessions 1"])
    }

    /// Uploads and downloads `abc`.
    private func expect(warnings: Int, options: [String] = []) async throws {
        let server = try await SSHServerProcess.start(options: options)
        defer { server.stop() }
        let folder = server.folder.appending(path: "files")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let source = FilePath(folder.appending(path: "source").path)
        try Data("abc".utf8).write(to: folder.appending(path: "source"))
        let endpoint = Endpoint.sftp(
            "sftp://\(server.user)@127.0.0.1:\(server.port)\(folder.path)/",
            settings: ["identity": server.userKey, "agent": "none", "knownHosts": try server.knownHosts()])
        let transport = SFTPTransport()
        let payloads: [FileAttempt.Payload] = [
            .upload(UploadSource(path: source, identity: try SourceIdentity(ofFileAt: source))),
            .download(DownloadDestination(root: FilePath(folder.path), name: "received", partName: ".received.part")),
        ]
        for payload in payloads {
            let attempt = FileAttempt(
                transferID: "t-1", endpoint: endpoint, payload: payload, remotePath: try RemotePath("-n it's\n"),
                options: AttemptOptions(verification: .checksum), credentials: NoSecrets(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            let receipt = try await transport.perform(
                attempt, reporting: AttemptReporter(progress: { _, _ in }, checkpoint: { _ in }))
            #expect(receipt.checksum == Self.digest)
            #expect(receipt.warnings.count == warnings, "\(receipt.warnings)")
        }
        await transport.shutdown()
    }
}

private struct NoSecrets: CredentialProvider {
    func secret(for reference: CredentialReference) async throws -> Secret { Secret("") }
}
