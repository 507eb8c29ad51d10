import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Connections that break before a request's head has arrived whole: the server has acted on nothing, and the client can't know that.
@Suite struct CutHeadTests {
    private static let size = 100

    /// Within the first line, at its end and behind it; within the headers. All requests have more bytes than that.
    private static let places = [1, 3, 4, 13, 20, 21, 22, 25, 40, 60, 80]

    /// A server that reads so much of one request's head and closes; the number counts all requests, `OPTIONS` included.
    private func upload(_ number: Int, after count: Int) throws -> TestUpload {
        let isFirst = Locked(true)
        return try TestUpload(
            size: Self.size,
            cutsHead: { next in
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

    @Test(arguments: [0] + places) func ofOPTIONS(place: Int) async throws {
        let upload = try upload(0, after: place)
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.questions == 1)
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    @Test(arguments: places) func ofPOST(place: Int) async throws {
        let upload = try upload(1, after: place)
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.methods.isEmpty)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    /// The server says that it has nothing; the same attempt goes on if the network had not taken all of the content yet.
    @Test(arguments: places) func ofPATCH(place: Int) async throws {
        let upload = try upload(2, after: place)
        let failure = await upload.failure()
        if let failure {
            #expect(failure.failureClass == .transient)
            _ = try await upload.run(from: upload.recorder.checkpoints.last)
        }
        #expect(upload.methods == ["POST"] + (failure == nil ? ["HEAD"] : ["HEAD", "HEAD"]) + ["PATCH"])
        #expect(upload.requests.last?.body == TemporaryFile.content(size: Self.size))
        await upload.end()
    }

    @Test(arguments: [0] + places) func ofHEAD(place: Int) async throws {
        let upload = try upload(0, after: place)
        #expect(await upload.failure(from: try upload.checkpoint())?.failureClass == .transient)
        #expect(upload.methods.isEmpty)
        _ = try await upload.run(from: try upload.checkpoint())
        #expect(upload.methods == ["HEAD", "PATCH"])
        #expect(upload.requests.last?.body == TemporaryFile.content(size: Self.size))
        await upload.end()
    }

    @Test(arguments: [0] + places) func ofDELETE(place: Int) async throws {
        let upload = try upload(0, after: place)
        let checkpoint = try upload.checkpoint()
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.failureClass == .transient)
        try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.methods == ["DELETE"])
        await upload.end()
    }

    @Test(arguments: [0] + places) func ofGET(place: Int) async throws {
        let isFirst = Locked(true)
        let download = try TestDownload(
            cutsHead: { _ in
                isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst ? place : nil
                }
            }, { _, _ in [.answer(200, body: "content")] })
        #expect(await download.failure()?.failureClass == .transient)
        #expect(download.content == nil, "no part is made for nothing")
        _ = try await download.run(from: download.recorder.checkpoints.last)
        #expect(download.isInPlace && download.content == "content")
        await download.end()
    }
}
