import Foundation
import Testing
import TransferCore
import TransferKit
import TransportSFTP

/// How OpenSSH's server lets checksums be computed, or does not.
@Suite(.timeLimit(.minutes(10)))
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

    @Test func aCheckTellsTheHostKey() async throws {
        let folder = try await SFTPServerFolder()
        let report = try await folder.transport.check(try folder.endpoint(), credentials: ReferencedCredentials())
        let key = try #require(report.hostKeyFingerprint)
        #expect(key.hasPrefix("SHA256:"))
        // The only key that is trusted is that one.
        _ = try await folder.transport.check(try folder.endpoint(["hostKey": key]), credentials: ReferencedCredentials())
        await folder.close()
    }

    /// Uploads and downloads `abc`.
    private func expect(warnings: Int, options: [String] = []) async throws {
        let folder = try await SFTPServerFolder(options: options)
        try Data("abc".utf8).write(to: folder.local.appending(path: "source"))
        for payload in [FileAttempt.Payload.upload(try folder.source("source")), .download(folder.destination("received"))] {
            let receipt = try await folder.move(payload, "-n it's\n", AttemptOptions(verification: .checksum))
            #expect(receipt.checksum == Self.digest)
            #expect(receipt.warnings.count == warnings, "\(receipt.warnings)")
        }
        await folder.close()
    }
}
