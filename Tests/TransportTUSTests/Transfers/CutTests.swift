import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Connections that break at each byte of a request or response.
@Suite struct CutTests {
    private static let size = 100

    /// Runs attempts until the file is complete. Each failure must be transient, as after a lost connection. The content of each request
    /// must match its offset.
    private func complete(_ upload: TestUpload, from start: Checkpoint?, _ place: String) async throws {
        var checkpoint = start
        var attempts = 0
        while true {
            attempts += 1
            do {
                _ = try await upload.run(from: checkpoint)
                break
            } catch let error as TransferError {
                #expect(error.failureClass == .transient, "\(place): \(error)")
                checkpoint = upload.recorder.checkpoints.last ?? start
            }
            try #require(attempts < 3, "\(place): too many attempts")
        }
        let content = TemporaryFile.content(size: Self.size)
        var mayPatch = true
        for request in upload.requests {
            if request.method == "PATCH" {
                let offset = try #require(request.headers["upload-offset"].flatMap { Int($0) })
                #expect(mayPatch, "\(place): a PATCH directly after a PATCH: \(upload.methods)")
                #expect(Array(content[offset...].prefix(request.body.count)) == request.body, "\(place)")
            }
            mayPatch = request.method != "PATCH"
        }
    }

    @Test(arguments: ["POST", "HEAD", "PATCH"]) func recoversFromTruncatedResponses(method: String) async throws {
        let whole = BreakingServer.answer(to: method, offset: Self.size, size: Self.size)
        for position in 0...whole.utf8.count {
            let server = BreakingServer(size: Self.size, method, .answer(position))
            let upload = try TestUpload(size: Self.size) { request, _ in server.steps(request) }
            let start = method == "HEAD" ? try upload.checkpoint() : nil
            try await complete(upload, from: start, "\(method) after \(position) bytes of \(whole.utf8.count)")
            await upload.end()
        }
    }

    @Test func recoversFromTruncatedResponseToCreationWithContent() async throws {
        let whole = BreakingServer.answer(to: "POST", offset: Self.size, size: Self.size)
        for position in 0...whole.utf8.count {
            let server = BreakingServer(size: Self.size, "POST", .answer(position))
            let upload = try TestUpload(size: Self.size, offers: "creation-with-upload") { request, _ in
                // Each creation is a separate upload.
                if request.method == "POST" { server.state.withLock { $0.stored = 0 } }
                return server.steps(request)
            }
            try await complete(upload, from: nil, "POST after \(position) bytes of \(whole.utf8.count)")
            #expect(upload.methods == ["POST"] || upload.methods == ["POST", "POST", "PATCH"])
            await upload.end()
        }
    }

    @Test func recoversFromTruncatedContent() async throws {
        for position in 0...Self.size {
            let server = BreakingServer(size: Self.size, "PATCH", .content(position))
            let upload = try TestUpload(size: Self.size) { request, _ in server.steps(request) }
            try await complete(upload, from: nil, "PATCH after \(position) bytes of content")
            #expect(server.state.withLock { $0.stored } == Self.size)
            await upload.end()
        }
    }

    /// A request with `Expect: 100-continue` is interrupted before, within and after the interim response, and at each byte of the content.
    @Test func recoversFromTruncatedResumedContent() async throws {
        let interim = (0...BreakingServer.interim.utf8.count).map { BreakingServer.Cut.interim($0) }
        for cut in interim + (0...Self.size).map({ .content($0) }) {
            let server = BreakingServer(size: Self.size, "PATCH", cut)
            let upload = try TestUpload(size: Self.size) { request, _ in server.steps(request) }
            try await complete(upload, from: try upload.checkpoint(), "resumed PATCH, \(cut)")
            #expect(server.state.withLock { $0.stored } == Self.size, "\(cut)")
            var isWhole = false
            if case .content(Self.size) = cut { isWhole = true }
            #expect(upload.methods == ["HEAD", "PATCH", "HEAD"] + (isWhole ? [] : ["HEAD", "PATCH"]), "\(cut)")
            #expect(upload.requests.filter { $0.method == "PATCH" }.allSatisfy { $0.headers["expect"] == "100-continue" }, "\(cut)")
            await upload.end()
        }
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 262_143, 262_144, 262_145, 524_288, 1_999_999, 2_000_000])
    func recoversFromTruncatedLargeContent(position: Int) async throws {
        let size = 2_000_000
        let server = BreakingServer(size: size, "PATCH", .content(position))
        let upload = try TestUpload(size: size) { request, _ in server.steps(request) }
        do {
            _ = try await upload.run()
        } catch let error as TransferError {
            #expect(error.failureClass == .transient)
            _ = try await upload.run(from: upload.recorder.checkpoints.last)
        }
        #expect(server.state.withLock { $0.stored } == size)
        let bodies = upload.requests.filter { $0.method == "PATCH" }.flatMap(\.body)
        #expect(bodies == TemporaryFile.content(size: size))
        await upload.end()
    }

    /// The server closes the connection without a response after it has acted on a request. By default, libcurl would send the request again.
    @Test(arguments: ["POST", "PATCH"]) func doesNotRepeatUncertainRequests(method: String) async throws {
        let isSecond = Locked(false)
        let upload = try TestUpload(size: 10) { request, _ in
            if request.method == method, isSecond.withLock({ $0 }) { return [.read(nil), .close] }
            return [request.method == "POST" ? .created : request.method == "HEAD" ? .offset(10) : .accepted(10)]
        }
        _ = try await upload.run()
        isSecond.withLock { $0 = true }
        let error = await upload.failure()
        if method == "POST" {
            #expect(error?.failureClass == .transient)
            #expect(upload.methods == ["POST", "PATCH", "POST"])
        } else {
            #expect(error == nil, "HEAD reports that all bytes arrived")
            #expect(upload.methods == ["POST", "PATCH", "POST", "PATCH", "HEAD"])
        }
        await upload.end()
    }
}

/// Servers that are slow or silent, or that send unusual responses.
@Suite struct StrangeServerTests {
    @Test func readsSlowResponses() async throws {
        let upload = try TestUpload(size: 10) { request, _ in
            let answer = BreakingServer.answer(to: request.method, offset: request.method == "POST" ? 0 : 10, size: 10)
            return [.read(nil)] + answer.map { ServerStep.raw(String($0)) }
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
    func rejectsOtherProtocols(answer: String) async throws {
        let creation = try TestUpload(size: 10) { _, _ in [.read(nil), .raw(answer), .close] }
        let error = await creation.failure()
        #expect(error?.failureClass == .unreachable || error?.failureClass == .transient)
        #expect(creation.methods == ["POST"])
        await creation.end()
        let patch = try TestUpload(size: 10) { request, _ in
            request.method == "POST" ? [.created] : request.method == "HEAD" ? [.offset(0)] : [.read(nil), .raw(answer), .close]
        }
        let failure = await patch.failure()
        #expect(failure?.failureClass == .protocolViolation || failure?.failureClass == .transient)
        #expect(patch.methods == ["POST", "PATCH", "HEAD"])
        await patch.end()
    }

    @Test func limitsSizeOfHeaders() async throws {
        let upload = try TestUpload(size: 10) { _, _ in
            [
                .read(nil),
                .raw("HTTP/1.1 201 Created\r\n" + String(repeating: "X-Filler: \(String(repeating: "x", count: 1000))\r\n", count: 400)),
            ]
        }
        #expect(await upload.failure()?.failureClass == .unreachable)
        await upload.end()
    }

    @Test func limitsSizeOfPages() async throws {
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

    /// The server rejects `Expect` immediately or only after the content. The client does not wait long for the interim response.
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
