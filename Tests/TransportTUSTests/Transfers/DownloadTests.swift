import Crypto
import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportTUS

/// Downloads with `GET`, which resume with range requests (RFC 9110, sections 13 to 15).
@Suite struct DownloadTests {
    private static let tag = "\"v1\""

    /// A response that announces ten bytes and ends after four.
    private static func truncatedResponse(_ headers: [String: String]) -> [ServerStep] {
        let lines = headers.map { "\($0.key): \($0.value)\r\n" }.joined()
        return [.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\(lines)\r\n0123"), .close]
    }

    /// Returns a download that has received four of ten bytes. The server then sends `responses` to the next requests.
    private func halfReceived(_ headers: [String: String] = ["ETag": tag], then responses: [[ServerStep]]) async throws -> TestDownload {
        let download = try TestDownload(answers: [Self.truncatedResponse(headers)] + responses)
        let error = await download.failure()
        #expect(error?.failureClass == .transient)
        #expect(download.partContent == "0123")
        #expect(!download.isInPlace)
        return download
    }

    @Test func downloadsFileInOneRequest() async throws {
        var download = try TestDownload(answers: [[.answer(200, ["ETag": Self.tag], body: "0123456789")]])
        download.remotePath = "folder/ä b?.txt"
        let receipt = try await download.run()
        #expect(receipt.bytes == 10)
        #expect(receipt.remoteURL == download.server.url("/files/folder/%C3%A4%20b%3F.txt"))
        #expect(download.content == "0123456789" && download.isInPlace)
        let request = try #require(download.server.requests.first)
        #expect(request.method == "GET" && request.path == "/files/folder/%C3%A4%20b%3F.txt")
        #expect(request.headers["range"] == nil)
        #expect(request.headers["accept-encoding"] == "identity")
        #expect(download.recorder.progress.last?.confirmed == 10)
        await download.end()
    }

    /// The URL of an upload to tusd contains only an identifier. The response contains the file name.
    @Test func usesFileNameFromContentDispositionIfConfigured() async throws {
        var download = try TestDownload(answers: [
            [.answer(200, ["Content-Disposition": "inline;filename=\"reel.mov\""], body: "0123456789")]
        ])
        download.remotePath = "file"
        download.endpoint.settings["contentDisposition"] = "true"
        #expect(try await download.run().localPath == download.folder.appending("reel.mov"))
        #expect(FileManager.default.contents(atPath: download.folder.appending("reel.mov").string)?.count == 10 && !download.isInPlace)
        await download.end()
    }

    @Test func downloadsEmptyFile() async throws {
        let download = try TestDownload(answers: [[.answer(200)]])
        #expect(try await download.run().bytes == 0)
        #expect(download.isInPlace)
        await download.end()
    }

    @Test func downloadsFileOfUnknownLength() async throws {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"
        let download = try TestDownload(answers: [[.raw(chunked)]])
        #expect(try await download.run().bytes == 10)
        #expect(download.content == "0123456789")
        await download.end()
    }

    // MARK: Resuming

    @Test(arguments: [
        ["ETag": "\"v1\""],
        ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:50:37 GMT"],
        ["ETag": "W/\"v1\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:50:37 GMT"],
    ])
    func resumesSameVersion(headers: [String: String]) async throws {
        let range = headers.merging(["Content-Range": "bytes 4-9/10"]) { $1 }
        let download = try await halfReceived(headers, then: [[.answer(206, range, body: "456789")]])
        let checkpoint = try #require(download.recorder.checkpoints.last)
        #expect(checkpoint.confirmed == 4)
        #expect(try await download.run(from: checkpoint).bytes == 10)
        #expect(download.content == "0123456789")
        let request = try #require(download.server.requests.last)
        #expect(request.headers["range"] == "bytes=4-")
        let validator = headers["ETag"].flatMap { $0.hasPrefix("W/") ? nil : $0 } ?? headers["Last-Modified"]
        #expect(request.headers["if-range"] == validator)
        await download.end()
    }

    /// The headers don't distinguish versions of the remote file, or the server supports no ranges. The client must therefore not append the next
    /// response to the received bytes.
    @Test(arguments: [
        [:], ["ETag": "W/\"v1\""], ["ETag": "\"v1\"", "Accept-Ranges": "none"],
        // `Last-Modified` has a resolution of one second, so the file may have changed again in the second in which the server responded.
        ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"],
    ])
    func restartsIfResponseCannotBeResumed(headers: [String: String]) async throws {
        let download = try await halfReceived(headers, then: [[.answer(200, headers, body: "abcdefghij")]])
        #expect(download.recorder.checkpoints.isEmpty)
        #expect(download.recorder.progress.allSatisfy { $0.confirmed == 0 })
        _ = try await download.run()
        #expect(download.content == "abcdefghij")
        await download.end()
    }

    @Test(arguments: [
        [ServerStep.answer(200, ["ETag": "\"v2\""], body: "abcdefghij")], [.answer(200, [:], body: "abcdefghij")],
        [.answer(206, ["ETag": "\"v2\"", "Content-Range": "bytes 4-9/10"], body: "efghij")],
        [.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes 4-10/11"], body: "efghijk")],
        [.answer(416, ["Content-Range": "bytes */3"])],
        // The server does not support ranges, or sends an invalid range.
        [.answer(200, ["ETag": "\"v1\""], body: "0123456789")],
        [.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes 5-9/10"], body: "56789")],
        [.answer(206, ["ETag": "\"v1\""], body: "456789")],
        [.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes 9-4/10"], body: "456789")],
        [.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes -4-9/10"], body: "456789")],
    ])
    func restartsIfResumingIsImpossible(response: [ServerStep]) async throws {
        let download = try await halfReceived(then: [response, [.answer(200, ["ETag": "\"v1\""], body: "abcdefghij")]])
        let error = await download.failure(from: download.recorder.checkpoints.last)
        #expect(error?.failureClass == .resumeLost)
        #expect(download.partContent == "0123")
        // The queue would restart the file, as this attempt does.
        _ = try await download.run()
        #expect(download.content == "abcdefghij")
        await download.end()
    }

    @Test func remembersServerWithoutRanges() async throws {
        let whole = [ServerStep.answer(200, ["ETag": "\"v1\""], body: "0123456789")]
        let download = try await halfReceived(then: [whole, Self.truncatedResponse(["ETag": "\"v1\""]), whole])
        let checkpoints = download.recorder.checkpoints
        _ = await download.failure(from: checkpoints.last)
        _ = await download.failure()
        #expect(download.recorder.checkpoints.count == checkpoints.count)
        _ = try await download.run()
        #expect(download.content == "0123456789")
        await download.end()
    }

    @Test func completesFileWhoseBytesHaveAllArrived() async throws {
        // All bytes arrived before the connection broke.
        let unknown = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"v1\"\r\n\r\n4\r\n0123\r\n"
        let download = try TestDownload(answers: [[.raw(unknown), .close], [.answer(416, ["Content-Range": "bytes */4"])]])
        _ = await download.failure()
        let checkpoint = try #require(download.recorder.checkpoints.last)
        let receipt = try await download.run(from: checkpoint)
        #expect(receipt.bytes == 4)
        #expect(download.content == "0123" && download.isInPlace)
        await download.end()
    }

    /// The process exited after the file got its final name and before the queue stored the result.
    @Test func doesNotRepeatCompletedDownload() async throws {
        let download = try TestDownload(answers: [[.answer(200, body: "0123456789")], [.answer(200, body: "abcdefghij")]])
        _ = try await download.run()
        #expect(try await download.run().bytes == 10)
        #expect(download.content == "0123456789")
        await download.end()
    }

    @Test func reportsMissingPartFile() async throws {
        let download = try await halfReceived(then: [])
        try FileManager.default.removeItem(atPath: download.folder.appending(".file.part").string)
        #expect(await download.failure(from: download.recorder.checkpoints.last)?.failureClass == .resumeLost)
        #expect(download.server.requests.count == 1)
        await download.end()
    }

    // MARK: Invalid responses

    @Test(arguments: [
        [ServerStep.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes 4-9/10", "Content-Encoding": "gzip"], body: "456789")],
        [.answer(204)],
    ])
    func rejectsInvalidResponses(response: [ServerStep]) async throws {
        let download = try await halfReceived(then: [response])
        let error = await download.failure(from: download.recorder.checkpoints.last)
        #expect(error?.failureClass == .protocolViolation)
        #expect(download.partContent == "0123")
        await download.end()
    }

    @Test func rejectsUnrequestedRange() async throws {
        let download = try TestDownload(answers: [[.answer(206, ["Content-Range": "bytes 0-9/20"], body: "0123456789")]])
        #expect(await download.failure()?.failureClass == .protocolViolation)
        #expect(download.content == nil)
        await download.end()
    }

    // MARK: Error responses

    @Test(arguments: [
        (404, FailureClass.permanent, TransferError.Code.noSuchRemoteFile), (410, .permanent, .noSuchRemoteFile),
        (401, .credentials, .credentialsRejected), (403, .credentials, .credentialsRejected), (405, .unsupported, .unsupported),
        (400, .permanent, .rejected), (302, .permanent, .rejected), (429, .transient, .serverError), (503, .transient, .serverUnavailable),
        (500, .transient, .serverError),
    ])
    func classifiesErrorResponses(status: Int, failureClass: FailureClass, code: TransferError.Code) async throws {
        let download = try TestDownload { _, _ in [.answer(status, ["Retry-After": "7", "Location": "http://127.0.0.2/x"], body: "no")] }
        let error = await download.failure()
        #expect(error?.failureClass == failureClass)
        #expect(error?.code == code)
        #expect(error?.retryAfter == (status == 429 || status == 503 ? .seconds(7) : nil))
        #expect(download.content == nil)
        await download.end()
    }

    /// One inaccessible file must not block the account.
    @Test func treats403AfterAcceptedCredentialsAsFileError() async throws {
        var download = try TestDownload(answers: [[.answer(200, body: "0")], [.answer(403)]])
        download.endpoint.credentials = [.bearer(.environment("TOKEN"))]
        download.overwrite = .always
        _ = try await download.run()
        try FileManager.default.removeItem(atPath: download.folder.appending(".file.part").string)
        #expect(await download.failure()?.failureClass == .permanent)
        await download.end()
    }

    @Test func resumesAfterShortRange() async throws {
        let some = ServerStep.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes 4-6/10"], body: "456")
        let rest = ServerStep.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes 7-9/10"], body: "789")
        let download = try await halfReceived(then: [[some], [rest]])
        #expect(await download.failure(from: download.recorder.checkpoints.last)?.failureClass == .transient)
        let checkpoint = try #require(download.recorder.checkpoints.last)
        #expect(checkpoint.confirmed == 7)
        _ = try await download.run(from: checkpoint)
        #expect(download.content == "0123456789")
        await download.end()
    }

    @Test(arguments: [301, 302, 303, 307, 308]) func followsRedirectsWithinServer(status: Int) async throws {
        let download = try TestDownload(answers: [[.answer(status, ["Location": "/elsewhere"])], [.answer(200, body: "0123456789")]])
        #expect(try await download.run().bytes == 10)
        #expect(download.server.requests.map(\.path) == ["/files/a.txt", "/elsewhere"])
        await download.end()
    }

    // MARK: Existing files

    @Test func doesNotReplaceExistingFile() async throws {
        let download = try TestDownload(answers: [[.answer(200, body: "0123456789")]])
        try download.put("mine")
        #expect(await download.failure()?.code == .fileExists)
        #expect(download.content == "mine")
        await download.end()
    }

    @Test(arguments: [(OverwritePolicy.different, "0123456789", false), (.different, "012345678", true), (.always, "0123456789", true)])
    func replacesExistingFileAccordingToPolicy(policy: OverwritePolicy, mine: String, isReplaced: Bool) async throws {
        var download = try TestDownload(answers: [[.answer(200, body: "abcdefghij")]])
        download.overwrite = policy
        try download.put(mine)
        #expect(try await download.run().bytes == 10)
        #expect(download.content == (isReplaced ? "abcdefghij" : mine))
        #expect(download.recorder.progress.last?.confirmed == 10)
        await download.end()
    }

    @Test func keepsModificationTime() async throws {
        let download = try TestDownload(answers: [[.answer(200, ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], body: "0")]])
        _ = try await download.run()
        let attributes = try FileManager.default.attributesOfItem(atPath: download.folder.appending("file").string)
        #expect((attributes[.modificationDate] as? Date)?.timeIntervalSince1970 == 784_111_777)
        await download.end()
    }

    // MARK: Checksums

    @Test(arguments: ["Repr-Digest", "Digest", "Content-MD5"]) func comparesChecksum(header: String) async throws {
        let content = Data("0123456789".utf8)
        let (sha, md5) = (Data(SHA256.hash(data: content)), Data(Insecure.MD5.hash(data: content)))
        let value = ["Repr-Digest": "sha-256=:\(sha.base64EncodedString()):, x=:AA==:", "Digest": "SHA-256=\(sha.base64EncodedString())"][
            header]
        var download = try TestDownload(answers: [
            [.answer(200, [header: value ?? md5.base64EncodedString()], body: "0123456789")],
            [.answer(200, [header: value ?? md5.base64EncodedString()], body: "0123456780")],
        ])
        download.options.verification = .checksum
        download.overwrite = .always
        let receipt = try await download.run()
        // The part file stays as a second hard link to the complete file until the queue has stored the result. Removing the part file
        // makes the next attempt download the file again.
        try FileManager.default.removeItem(atPath: download.folder.appending(".file.part").string)
        #expect(
            receipt.checksum
                == (value == nil
                    ? "md5:781e5e245d69b566979b86e28d23f2c7" : "sha256:84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"))
        let error = await download.failure()
        #expect(error?.code == .checksumMismatch && error?.failureClass == .resumeLost)
        #expect(download.server.requests.first?.headers["want-repr-digest"] != nil)
        await download.end()
    }

    @Test func rejectsDownloadWithoutRequiredChecksum() async throws {
        var download = try TestDownload(answers: [[.answer(200, body: "0123456789")]])
        download.options.verification = .checksum
        #expect(await download.failure()?.failureClass == .unsupported)
        #expect(download.content == nil)
        await download.end()
    }
}
