import Foundation
import Testing
import TransferCore
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct ExpectedChecksumTests {
    private static let content = Data("0123456789".utf8)
    private static let sums = [
        "md5:781e5e245d69b566979b86e28d23f2c7", "sha1:87acec17cd9dcd20a716cc2cf67417b71c8a7016",
        "sha256:84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882",
        "sha512:bb96c2fc40d2d54617d6f276febe571f623a8dadf0b734855299b0e107fda32cf6b69f2da32b36445d73690b93cbd0f7bfc20e0f7f28553d2a4428f23b716e90",
    ]

    @Test(arguments: sums, Verification.allCases) func acceptsExpectedChecksum(checksum: String, verification: Verification) async throws {
        let shell = TestShell()
        try await ProcessFixture.with(commands: shell) { fixture in
            var transfer = TestTransfer(fixture)
            transfer.options.expectedChecksum = checksum.uppercased()
            transfer.options.verification = verification
            try fixture.put(Self.content, "a.bin")
            let receipt = try await transfer.download()
            #expect(receipt.checksum == checksum && receipt.warnings.isEmpty)
            #expect(transfer.received == Self.content)
            #expect(shell.commands.isEmpty, "The server does not need to compute a checksum.")
        }
    }

    @Test(arguments: sums) func rejectsContentWithOtherChecksum(checksum: String) async throws {
        try await ProcessFixture.with { fixture in
            var transfer = TestTransfer(fixture)
            transfer.options.expectedChecksum = checksum
            transfer.options.verification = .none
            try fixture.put(Data("0123456780".utf8), "a.bin")
            let failure = await transfer.failure { try await transfer.download() }
            #expect(failure?.failureClass == .resumeLost && failure?.code == .checksumMismatch)
            #expect(transfer.received == nil)
        }
    }

    @Test(
        arguments: [
            "", "sha256", "sha256:", "sha256:00", "crc:00", sums[0] + "0", sums[0] + " ", "md5:" + String(repeating: "g", count: 32),
        ])
    func rejectsInvalidChecksums(text: String) async throws {
        var options = AttemptOptions()
        options.expectedChecksum = text
        let error = #expect(throws: TransferError.self) { try SFTPTransport.validate(options) }
        #expect(error?.failureClass == .permanent && error?.code == .checksumMismatch)
    }

    @Test func rejectsUnsupportedSessionOptions() throws {
        let transport = try #require(SFTPTransport() as any Transport as? any SessionValidating)
        let endpoint = Endpoint.sftp("sftp://me@host/in/")
        try transport.validate(AttemptOptions(metadata: ["a b": "1"]), for: .upload, at: endpoint)
        let error = #expect(throws: TransferError.self) {
            try transport.validate(AttemptOptions(settings: ["upload": "form"]), for: .upload, at: endpoint)
        }
        #expect(error?.failureClass == .unsupported)
    }
}
