import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Servers that are slow or silent, or that send unusual responses.
@Suite struct StrangeServerTests {
    @Test func readsSlowResponses() async throws {
        let upload = try TestUpload(size: 10) { request, _ in
            let response = BreakingServer.answer(to: request.method, offset: request.method == "POST" ? 0 : 10, size: 10)
            return [.read(nil)] + response.map { ServerStep.raw(String($0)) }
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    @Test func ignoresInterimResponses() async throws {
        let upload = try TestUpload(size: 10) { request, _ in
            [
                .raw("HTTP/1.1 102 Processing\r\nUpload-Offset: 99\r\n\r\nHTTP/1.1 103 Early Hints\r\nLocation: /no\r\n\r\n"),
                request.method == "POST" ? .created : .accepted(10),
            ]
        }
        _ = try await upload.run()
        #expect(upload.requests.last?.path == "/files/1")
        await upload.end()
    }

    @Test func readsHEADWithContentLength() async throws {
        let upload = try TestUpload(size: 10) { request, _ in
            request.method == "HEAD"
                ? [.raw("HTTP/1.1 200 OK\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 4\r\nContent-Length: 10\r\n\r\n")] : [.accepted(10)]
        }
        _ = try await upload.run(from: try upload.checkpoint())
        #expect(upload.requests.last?.headers["upload-offset"] == "4")
        await upload.end()
    }

    @Test(arguments: [200, 201, 202]) func acceptsOtherSuccessStatuses(status: Int) async throws {
        let upload = try TestUpload(size: 10) { request, _ in
            [.tus(status, request.method == "POST" ? ["Location": "/files/1"] : ["Upload-Offset": "10"])]
        }
        _ = try await upload.run()
        await upload.end()
    }

    @Test(arguments: ["\u{0}\u{1}\u{2}garbage\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 999999 x\r\n\r\n"])
    func rejectsOtherProtocols(response: String) async throws {
        let creation = try TestUpload(size: 10) { _, _ in [.read(nil), .raw(response), .close] }
        let error = await creation.failure()
        #expect(error?.failureClass == .unreachable || error?.failureClass == .transient)
        #expect(creation.methods == ["POST"])
        await creation.end()
        let patch = try TestUpload(size: 10) { request, _ in
            request.method == "POST" ? [.created] : request.method == "HEAD" ? [.offset(0)] : [.read(nil), .raw(response), .close]
        }
        let failure = await patch.failure()
        #expect(failure?.failureClass == .protocolViolation || failure?.failureClass == .transient)
        #expect(patch.methods == ["POST", "PATCH", "HEAD"])
        await patch.end()
    }

    @Test func rejectsTooLargeHeaders() async throws {
        let upload = try TestUpload(size: 10) { _, _ in
            [
                .read(nil),
                .raw("HTTP/1.1 201 Created\r\n" + String(repeating: "X-Filler: \(String(repeating: "x", count: 1000))\r\n", count: 400)),
            ]
        }
        #expect(await upload.failure()?.failureClass == .unreachable)
        await upload.end()
    }

    @Test func rejectsTooLargePage() async throws {
        let upload = try TestUpload(size: 10) { _, _ in
            [
                .read(nil),
                .raw("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + String(repeating: "<p>Log in</p>", count: 20_000)), .silence,
            ]
        }
        #expect(await upload.failure()?.failureClass == .unreachable)
        await upload.end()
    }

    @Test(arguments: ["POST", "HEAD", "PATCH"]) func canBeCancelledWhileServerIsSilent(method: String) async throws {
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let upload = try TestUpload(size: 10) { request, _ in
            guard request.method == method else { return [request.method == "POST" ? .created : .offset(0)] }
            return [.read(nil), .call { arrival.finish() }, .silence]
        }
        let checkpoint = method == "HEAD" ? try upload.checkpoint() : nil
        let task = Task { try await upload.run(from: checkpoint) }
        for await _ in arrived {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(upload.methods.last == method)
        await upload.end()
    }

    /// The server rejects `Expect` immediately or only after the content. The first attempt fails, and the next one sends no `Expect`.
    @Test(arguments: [false, true]) func completesIfServerRejectsExpect(isLate: Bool) async throws {
        let upload = try TestUpload(size: 10) { request, _ in
            if request.method == "HEAD" { return [.offset(0)] }
            if request.headers["expect"] == nil { return [.accepted(10)] }
            return (isLate ? [.read(nil)] : []) + [.raw("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"), .close]
        }
        #expect(await upload.failure(from: try upload.checkpoint())?.failureClass == .transient)
        #expect(upload.requests.contains { $0.headers["expect"] == "100-continue" })
        _ = try await upload.run(from: try upload.checkpoint())
        #expect(upload.requests.last?.headers["expect"] == nil)
        await upload.end()
    }

    @Test func resumedUploadExpectsContinue() async throws {
        let upload = try TestUpload(size: 300_000) { request, _ in
            request.method == "HEAD" ? [.offset(1000)] : [.raw("HTTP/1.1 100 Continue\r\n\r\n"), .accepted(300_000)]
        }
        _ = try await upload.run(from: try upload.checkpoint())
        #expect(upload.requests.last?.headers["expect"] == "100-continue")
        await upload.end()
    }
}
