import Foundation
import Testing
import TransferCore
import TransferKit
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct SFTPChecksumTests {
    /// SHA-256 of `abc` (FIPS 180-4, examples).
    private static let digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    @Test func computesChecksumsInShell() async throws {
        try await expect(warnings: 0)
    }

    /// The server accepts the checksum command, but runs `internal-sftp` instead.
    @Test func readsFilesBackWithoutShell() async throws {
        try await expect(warnings: 1, options: ["ForceCommand internal-sftp"])
    }

    @Test func readsFilesBackWithoutSpareChannel() async throws {
        try await expect(warnings: 1, options: ["MaxSessions 1"])
    }

    @Test func checkReportsHostKey() async throws {
        let folder = try await SFTPServerFolder()
        let report = try await folder.transport.check(try folder.endpoint(), credentials: ReferencedCredentials())
        let key = try #require(report.hostKeyFingerprint)
        #expect(key.hasPrefix("SHA256:"))
        // An endpoint that trusts only this key can connect.
        _ = try await folder.transport.check(try folder.endpoint(["hostKey": key]), credentials: ReferencedCredentials())
        await folder.close()
    }

    /// Uploads and downloads `abc`, and expects the given number of warnings in each receipt.
    private func expect(warnings: Int, options: [String] = []) async throws {
        let folder = try await SFTPServerFolder(options: options)
        try Data("abc".utf8).write(to: folder.local.appending(path: "source"))
        for payload in [FileAttempt.Payload.upload(try folder.source("source")), .download(folder.destination("received"))] {
            let receipt = try await folder.transfer(payload, "-n it's\n", AttemptOptions(verification: .checksum))
            #expect(receipt.checksum == Self.digest)
            #expect(receipt.warnings.count == warnings, "\(receipt.warnings)")
        }
        await folder.close()
    }
}
