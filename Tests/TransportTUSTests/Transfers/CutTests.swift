import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Connections that break at each byte of a request or response.
@Suite struct CutTests {
    private static let size = 100

    /// Runs attempts until the file is complete. Each failure must be transient, as after a lost connection. The content of each request
    /// must match its offset, and no `PATCH` may directly follow another `PATCH`.
    private func complete(_ upload: TestUpload, from start: Checkpoint?, _ context: String) async throws {
        var checkpoint = start
        var attempts = 0
        while true {
            attempts += 1
            do {
                _ = try await upload.run(from: checkpoint)
                break
            } catch let error as TransferError {
                #expect(error.failureClass == .transient, "\(context): \(error)")
                checkpoint = upload.recorder.checkpoints.last ?? start
            }
            try #require(attempts < 3, "\(context): too many attempts")
        }
        let content = TemporaryFile.content(size: Self.size)
        var mayPatch = true
        for request in upload.requests {
            if request.method == "PATCH" {
                let offset = try #require(request.headers["upload-offset"].flatMap { Int($0) })
                #expect(mayPatch, "\(context): a PATCH directly after a PATCH: \(upload.methods)")
                #expect(Array(content[offset...].prefix(request.body.count)) == request.body, "\(context)")
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
            var methods = upload.methods
            // If the network accepted bytes, but the server's offset includes none of them, the client compares the size at the end.
            if !isWhole, methods.last == "GET" { methods.removeLast() }
            #expect(methods == ["HEAD", "PATCH", "HEAD"] + (isWhole ? [] : ["HEAD", "PATCH"]), "\(cut)")
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

    /// The server closes the connection without a response after it has acted on a request. By default, libcurl would repeat the request.
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
