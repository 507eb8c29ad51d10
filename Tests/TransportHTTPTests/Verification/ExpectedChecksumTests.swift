import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

@Suite struct ExpectedChecksumTests {
    private static let content = "0123456789"
    private static let sums = [
        "md5:781e5e245d69b566979b86e28d23f2c7", "sha1:87acec17cd9dcd20a716cc2cf67417b71c8a7016",
        "sha256:84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882",
        "sha512:bb96c2fc40d2d54617d6f276febe571f623a8dadf0b734855299b0e107fda32cf6b69f2da32b36445d73690b93cbd0f7bfc20e0f7f28553d2a4428f23b716e90",
    ]

    private static func transfer(_ checksum: String, _ answers: [[ServerStep]]) throws -> TestTransfer {
        var transfer = try TestTransfer("get", answers: answers)
        transfer.options.expectedChecksum = checksum
        return transfer
    }

    @Test(arguments: sums) func acceptsExpectedChecksum(checksum: String) async throws {
        let transfer = try Self.transfer(checksum.uppercased(), [[.answer(200, body: Self.content)]])
        #expect(try await transfer.run().checksum == checksum)
        #expect(transfer.server.requests.first?.headers["want-repr-digest"] == nil)
        await transfer.end()
    }

    @Test(arguments: sums) func rejectsWrongChecksum(checksum: String) async throws {
        let transfer = try Self.transfer(checksum, [[.answer(200, body: "0123456780")]])
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .resumeLost)
        #expect(failure?.code == .checksumMismatch)
        #expect(!FileManager.default.fileExists(atPath: transfer.folder.appending("file").string))
        await transfer.end()
    }

    /// The server does not need to send a checksum.
    @Test func expectedChecksumSufficesForVerification() async throws {
        var transfer = try Self.transfer(Self.sums[2], [[.answer(200, body: Self.content)]])
        transfer.options.verification = .checksum
        #expect(try await transfer.run().checksum == Self.sums[2])
        await transfer.end()
    }

    /// The verification `none` also ignores the server's checksum.
    @Test(arguments: Verification.allCases) func comparesChecksumOfServer(verification: Verification) async throws {
        let headers = ["Content-MD5": "eB5eJF1ptWaXm4bijSPyxw=="]
        var transfer = try TestTransfer(
            "get", answers: [[.answer(200, headers, body: "0123456780")], [.answer(200, headers, body: Self.content)]])
        transfer.options.verification = verification
        if verification != .none { #expect(await transfer.failure()?.code == .checksumMismatch) }
        #expect(try await transfer.run().checksum == (verification == .none ? nil : Self.sums[0]))
        await transfer.end()
    }

    /// The server's own checksum shows that the file is a different one, so a restart would not help.
    @Test(arguments: ["Repr-Digest", "Digest", "Content-Digest"]) func rejectsDifferentFileBeforeReceivingIt(header: String) async throws {
        let other = "sha-256=:\(Data(repeating: 7, count: 32).base64EncodedString()):;x=1"
        let transfer = try Self.transfer(Self.sums[2], [[.answer(200, [header: other], body: Self.content)]])
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .permanent)
        #expect(failure?.code == .checksumMismatch)
        #expect(transfer.content == nil)
        await transfer.end()
    }

    @Test(arguments: ["", "sha256:", "sha256:84d8", "crc32:00000000", "84d89877", "sha256:" + String(repeating: "g", count: 64)])
    func rejectsInvalidChecksums(checksum: String) async throws {
        let transfer = try Self.transfer(checksum, [])
        #expect(await transfer.failure()?.failureClass == .permanent)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }

    @Test func comparesChecksumAfterResuming() async throws {
        let transfer = try Self.transfer(
            Self.sums[2],
            [
                [.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"1\"\r\n\r\n0123"), .close],
                [.answer(206, ["ETag": "\"1\"", "Content-Range": "bytes 4-9/10"], body: "456780")],
            ])
        _ = await transfer.failure()
        let checkpoint = try #require(transfer.recorder.checkpoints.last)
        #expect(await transfer.failure(from: checkpoint)?.code == .checksumMismatch)
        await transfer.end()
    }

    @Test func rejectsExpectedChecksumOfUpload() async throws {
        var transfer = try TestTransfer("put", size: 1, answers: [])
        transfer.options.expectedChecksum = Self.sums[2]
        #expect(await transfer.failure()?.failureClass == .unsupported)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }
}
