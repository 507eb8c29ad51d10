import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Connections that break before the whole head of a request has arrived. The server has not acted on the request, but the client can't be
/// sure.
@Suite struct CutHeadTests {
    private static let size = 100

    /// The numbers of bytes after which the head is truncated: within the first line, at the end of this line, directly after this line, and
    /// within the headers. Every head is longer than the largest number.
    private static let positions = [1, 3, 4, 13, 20, 21, 22, 25, 40, 60, 80]

    /// Returns an upload to a server that reads only `count` bytes of one request's head and then closes the connection. `number` is the index of
    /// this request among all requests, including `OPTIONS`.
    private func upload(_ number: Int, after count: Int) throws -> TestUpload {
        let isFirst = Locked(true)
        return try TestUpload(
            size: Self.size,
            headLimit: { next in
                isFirst.withLock { isFirst in
                    guard isFirst, next == number else { return nil }
                    isFirst = false
                    return count
                }
            },
            { request, _ in
                switch request.method {
                case "POST": [.created]
                case "HEAD": [.offset(0, of: Self.size)]
                case "DELETE": [.tus(204)]
                default: (request.headers["expect"] == nil ? [] : [.raw("HTTP/1.1 100 Continue\r\n\r\n")]) + [.accepted(Self.size)]
                }
            })
    }

    @Test(arguments: [0] + positions) func recoversFromTruncatedHeadOfOPTIONS(position: Int) async throws {
        let upload = try upload(0, after: position)
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.featureRequests == 1)
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    @Test(arguments: positions) func recoversFromTruncatedHeadOfPOST(position: Int) async throws {
        let upload = try upload(1, after: position)
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.methods.isEmpty)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    /// The server reports that it has no bytes. If the network has not accepted the whole content, the same attempt resumes. Otherwise, the
    /// next attempt resumes.
    @Test(arguments: positions) func recoversFromTruncatedHeadOfPATCH(position: Int) async throws {
        let upload = try upload(2, after: position)
        let failure = await upload.failure()
        if let failure {
            #expect(failure.failureClass == .transient)
            _ = try await upload.run(from: upload.recorder.checkpoints.last)
        }
        // The last request compares the size, because the server may have kept bytes that its offset does not include.
        #expect(upload.methods == ["POST"] + (failure == nil ? ["HEAD"] : ["HEAD", "HEAD"]) + ["PATCH", "GET"])
        #expect(upload.requests.dropLast().last?.body == TemporaryFile.content(size: Self.size))
        await upload.end()
    }

    @Test(arguments: [0] + positions) func recoversFromTruncatedHeadOfHEAD(position: Int) async throws {
        let upload = try upload(0, after: position)
        #expect(await upload.failure(from: try upload.checkpoint())?.failureClass == .transient)
        #expect(upload.methods.isEmpty)
        _ = try await upload.run(from: try upload.checkpoint())
        #expect(upload.methods == ["HEAD", "PATCH"])
        #expect(upload.requests.last?.body == TemporaryFile.content(size: Self.size))
        await upload.end()
    }

    @Test(arguments: [0] + positions) func recoversFromTruncatedHeadOfDELETE(position: Int) async throws {
        let upload = try upload(0, after: position)
        let checkpoint = try upload.checkpoint()
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.failureClass == .transient)
        try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.methods == ["DELETE"])
        await upload.end()
    }

    @Test(arguments: [0] + positions) func recoversFromTruncatedHeadOfGET(position: Int) async throws {
        let isFirst = Locked(true)
        let download = try TestDownload(
            headLimit: { _ in
                isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst ? position : nil
                }
            }, { _, _ in [.answer(200, body: "content")] })
        #expect(await download.failure()?.failureClass == .transient)
        #expect(download.content == nil, "the client creates no part file before content arrives")
        _ = try await download.run(from: download.recorder.checkpoints.last)
        #expect(download.isInPlace && download.content == "content")
        await download.end()
    }
}
