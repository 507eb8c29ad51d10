import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP
import TransportSupport

/// Verification of files that were sent by `PUT`.
@Suite struct UploadVerificationTests {
    private static let size = 1_000
    private static let text = String(repeating: "0123456789", count: size / 10)
    private static let content = Array(text.utf8)

    private static func checksum(_ algorithm: ChecksumAlgorithm = .sha256, of content: [UInt8] = content) -> Checksum {
        var hash = RunningChecksum(algorithm)
        hash.update(content)
        return hash.checksum
    }

    private static func digest(of content: [UInt8] = content) -> String {
        "sha-256=:\(Data(checksum(of: content).bytes).base64EncodedString()):"
    }

    private func transfer(
        _ verification: Verification = .size, _ options: HTTPOptions = HTTPOptions(), answers: [[ServerStep]]
    ) throws -> TestTransfer {
        var transfer = try TestTransfer("put", size: Self.size, answers: answers)
        try transfer.file?.write(Self.content)
        transfer.options.verification = verification
        transfer.endpoint.settings = options.settings
        return transfer
    }

    private func methods(_ transfer: TestTransfer) -> [String] { transfer.server.requests.map(\.method) }

    @Test func defaultSendsNoMoreRequests() async throws {
        let transfer = try transfer(answers: [[.answer(201)]])
        let receipt = try await transfer.run()
        #expect(receipt.checksum == nil && receipt.warnings.isEmpty)
        #expect(methods(transfer) == ["PUT"] && transfer.server.requests[0].headers["want-repr-digest"] == nil)
        await transfer.end()
    }

    /// The server reports the checksum although the client did not request it.
    @Test(arguments: [201, 204]) func comparesReportedChecksum(status: Int) async throws {
        let transfer = try transfer(answers: [
            [.answer(status, ["Repr-Digest": Self.digest()])], [.answer(status, ["Repr-Digest": Self.digest(of: [1])])],
        ])
        #expect(try await transfer.run().checksum == Self.checksum().text)
        let error = await transfer.failure()
        #expect(error?.failureClass == .resumeLost && error?.code == .checksumMismatch, "\(String(describing: error))")
        #expect(methods(transfer) == ["PUT", "PUT"])
        await transfer.end()
    }

    /// The checksum describes the content of the response, such as a message (RFC 9530, section 3.1).
    @Test func ignoresChecksumOfMessage() async throws {
        let transfer = try transfer(answers: [[.answer(201, ["Repr-Digest": Self.digest(of: Array("stored".utf8))], body: "stored")]])
        #expect(try await transfer.run().checksum == nil)
        await transfer.end()
    }

    @Test func comparesNothingIfDisabled() async throws {
        let transfer = try transfer(
            .none, HTTPOptions(uploadCheck: .head), answers: [[.answer(201, ["Repr-Digest": Self.digest(of: [1])])]])
        #expect(try await transfer.run().checksum == nil)
        #expect(methods(transfer) == ["PUT"])
        await transfer.end()
    }

    // MARK: Sizes

    @Test func comparesSizeOnRequest() async throws {
        let otherContent = String(repeating: "a", count: Self.size)
        let transfer = try transfer(
            .size, HTTPOptions(uploadCheck: .head),
            answers: [[.answer(201)], [.answer(200, body: otherContent)], [.answer(201)], [.answer(200, body: "a" + otherContent)]])
        let receipt = try await transfer.run()
        #expect(receipt.checksum == nil && receipt.warnings.isEmpty)
        let error = await transfer.failure()
        #expect(error?.failureClass == .resumeLost && error?.code == .checksumMismatch)
        #expect(error?.message.contains("1001 bytes instead of 1000") == true, "\(String(describing: error))")
        #expect(methods(transfer) == ["PUT", "HEAD", "PUT", "HEAD"])
        await transfer.end()
    }

    @Test(arguments: [
        ServerStep.answer(405), .answer(403), .answer(500), .answer(503), .answer(200, ["Content-Encoding": "gzip"], body: "a"),
        .raw("HTTP/1.1 200 Scripted\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ])
    func warnsIfSizeIsUnavailable(step: ServerStep) async throws {
        let transfer = try transfer(.size, HTTPOptions(uploadCheck: .head), answers: [[.answer(201)], [step]])
        let receipt = try await transfer.run()
        #expect(receipt.warnings.count == 1 && receipt.warnings.first?.contains("unverified") == true, "\(receipt.warnings)")
        await transfer.end()
    }

    @Test(arguments: [404, 410]) func detectsMissingFile(status: Int) async throws {
        let transfer = try transfer(.size, HTTPOptions(uploadCheck: .head), answers: [[.answer(201)], [.answer(status)]])
        let error = await transfer.failure()
        #expect(error?.failureClass == .resumeLost && error?.code == .checksumMismatch, "\(String(describing: error))")
        await transfer.end()
    }

    // MARK: Checksums

    /// The server reports the checksum of encoded content, or of an empty response.
    @Test(arguments: [["Repr-Digest": digest(of: [1]), "Content-Encoding": "gzip"], ["Repr-Digest": digest(of: [])]])
    func ignoresChecksumOfOtherContent(headers: [String: String]) async throws {
        let transfer = try transfer(answers: [[.answer(201, headers)]])
        #expect(try await transfer.run().checksum == nil)
        await transfer.end()
    }

    @Test func rejectsEncodedContent() async throws {
        let transfer = try transfer(
            .checksum, answers: [[.answer(201)], [.answer(405)], [.answer(200, ["Content-Encoding": "gzip"], body: "a" + Self.text)]])
        let error = await transfer.failure()
        #expect(error?.failureClass == .unsupported, "\(String(describing: error))")
        #expect(transfer.server.requests.map { $0.headers["accept-encoding"] } == [nil, "identity", "identity"])
        await transfer.end()
    }

    @Test func detectsLongerContent() async throws {
        let transfer = try transfer(.checksum, answers: [[.answer(201)], [.answer(405)], [.answer(200, body: Self.text + "a")]])
        let error = await transfer.failure()
        #expect(error?.failureClass == .resumeLost && error?.message.contains("longer") == true, "\(String(describing: error))")
        await transfer.end()
    }

    /// For another request, a condition of the `PUT`, such as `If-None-Match`, would mean something else.
    @Test func sendsConditionsOnlyWithUpload() async throws {
        var transfer = try transfer(.size, HTTPOptions(uploadCheck: .head), answers: [[.answer(201)], [.answer(405)]])
        transfer.options.headers = ["If-None-Match": "*"]
        _ = try await transfer.run()
        #expect(transfer.server.requests.map { $0.headers["if-none-match"] } == ["*", nil])
        await transfer.end()
    }

    @Test func requestsChecksumWithUpload() async throws {
        let transfer = try transfer(.checksum, answers: [[.answer(204, ["Repr-Digest": Self.digest()])]])
        #expect(try await transfer.run().checksum == Self.checksum().text)
        #expect(transfer.server.requests.map { $0.headers["want-repr-digest"] } == ["sha-256=10, sha-512=5"])
        await transfer.end()
    }

    @Test func requestsChecksumAfterUpload() async throws {
        let otherContent = String(repeating: "a", count: Self.size)
        let transfer = try transfer(
            .checksum,
            answers: [
                [.answer(201)], [.answer(200, ["Repr-Digest": Self.digest()], body: otherContent)], [.answer(201)],
                [.answer(200, ["Repr-Digest": Self.digest(of: [1])], body: otherContent)],
            ])
        #expect(try await transfer.run().checksum == Self.checksum().text)
        #expect(await transfer.failure()?.code == .checksumMismatch)
        #expect(methods(transfer) == ["PUT", "HEAD", "PUT", "HEAD"])
        #expect(transfer.server.requests[1].headers["want-repr-digest"] != nil)
        await transfer.end()
    }

    /// Object stores use the MD5 checksum of an object as its entity tag, but not always.
    @Test func acceptsTagThatEqualsChecksum() async throws {
        let transfer = try transfer(.checksum, answers: [[.answer(200, ["ETag": "\"\(Self.checksum(.md5).digits)\""])]])
        #expect(try await transfer.run().checksum == Self.checksum(.md5).text)
        #expect(methods(transfer) == ["PUT"])
        await transfer.end()
    }

    @Test(arguments: ["\"0123456789abcdef0123456789abcdef\"", "W/\"\(checksum(.md5).digits)\"", "\"v1\""])
    func readsFileBackIfTagProvesNothing(tag: String) async throws {
        let transfer = try transfer(
            .checksum,
            answers: [[.answer(201, ["ETag": tag])], [.answer(200, ["ETag": tag], body: Self.text)], [.answer(200, body: Self.text)]])
        #expect(try await transfer.run().checksum == Self.checksum().text)
        #expect(methods(transfer) == ["PUT", "HEAD", "GET"])
        await transfer.end()
    }

    @Test func detectsChangedContent() async throws {
        let transfer = try transfer(
            .checksum, answers: [[.answer(201)], [.answer(405)], [.answer(200, body: String(repeating: "a", count: Self.size))]])
        let error = await transfer.failure()
        #expect(error?.failureClass == .resumeLost && error?.code == .checksumMismatch, "\(String(describing: error))")
        await transfer.end()
    }

    @Test func failsWithoutEvidence() async throws {
        let transfer = try transfer(.checksum, answers: [[.answer(201)], [.answer(403)], [.answer(403)]])
        let error = await transfer.failure()
        #expect(error?.failureClass == .unsupported && error?.message.contains("can't be verified") == true, "\(String(describing: error))")
        await transfer.end()
    }

    @Test func formsCannotBeVerified() async throws {
        var transfer = try TestTransfer("form", size: 3, answers: [])
        transfer.options.verification = .checksum
        #expect(await transfer.failure()?.failureClass == .unsupported && transfer.server.connectionCount == 0)
        await transfer.end()
    }

    /// The comparison needs the content of the whole stream, so the stream is not sent while it grows.
    @Test func sendsStreamOnceItHasEnded() async throws {
        var transfer = try transfer(.checksum, answers: [[.answer(204, ["Repr-Digest": Self.digest()])]])
        let growth = SourceGrowth(.growing(10))
        transfer.source = UploadSource(
            path: try #require(transfer.file?.path),
            identity: SourceIdentity(size: 0, modificationTime: 0, inode: 0, device: 0, bootID: ""), growth: growth)
        async let receipt = transfer.run()
        // The attempt may begin before or after the end of the stream.
        for _ in 0..<1_000 { await Task.yield() }
        growth.update(.complete(Int64(Self.size)))
        #expect(try await receipt.checksum == Self.checksum().text)
        #expect(transfer.server.requests.first?.headers["content-length"] == "1000")
        await transfer.end()
    }
}
