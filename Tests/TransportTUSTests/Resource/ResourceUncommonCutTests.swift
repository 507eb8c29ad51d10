import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Connections that break at each byte of less common requests and responses of the IETF protocol *Resumable Uploads for HTTP*. The client
/// neither re-sends stored bytes nor creates a second upload.
@Suite struct ResourceUncommonCutTests {
    private static let size = 100

    /// Runs at most four attempts, until one succeeds.
    ///
    /// - Returns: The number of attempts; 0 if none succeeded.
    private func complete(_ upload: TestUpload, from checkpoint: Checkpoint? = nil, _ context: String) async throws -> Int {
        for attempt in 1...4 {
            do {
                _ = try await upload.run(from: upload.recorder.checkpoints.last ?? checkpoint)
                return attempt
            } catch let error as TransferError {
                #expect(error.failureClass == .transient, "\(context): \(error)")
            }
        }
        return 0
    }

    private func checkpoint(_ version: String, _ upload: TestUpload) -> Checkpoint {
        let text = "{\"url\":\"\(upload.server.url("/up/1"))\",\"dialect\":\"ietf-\(version)\"}"
        return Checkpoint(data: Data(text.utf8), confirmed: 0)
    }

    /// Checks that the server has the whole file, and that the client sent each byte exactly once.
    private func check(_ upload: TestUpload, _ server: ResourceServer, _ context: String) {
        #expect(server.state.withLock { $0.isComplete && $0.stored == Self.size }, "\(context)")
        #expect(upload.requests.flatMap(\.body) == TemporaryFile.content(size: Self.size), "\(context)")
        #expect(upload.requests.count { $0.method == "POST" } == 1, "\(context)")
    }

    @Test(arguments: ResourceServer.versions) func recoversFromTruncatedResponseToHEAD(version: String) async throws {
        let whole = ResourceServer(version: version, "", nil).answer(to: "HEAD", .init(stored: 40))
        for position in 0...whole.utf8.count {
            let context = "version \(version), HEAD after \(position) bytes of \(whole.utf8.count)"
            let server = ResourceServer(version: version, "HEAD", .answer(position))
            server.state.withLock {
                $0.exists = true
                $0.stored = 40
            }
            let upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in server.steps(request) }
            let attempts = try await complete(upload, from: checkpoint(version, upload), context)
            #expect(upload.methods == Array(repeating: "HEAD", count: attempts) + ["PATCH"], "\(context)")
            #expect(attempts == (position == whole.utf8.count ? 1 : 2), "\(context)")
            #expect(upload.requests.flatMap(\.body) == Array(TemporaryFile.content(size: Self.size).dropFirst(40)), "\(context)")
            await upload.end()
        }
    }

    /// The server has the content, and the response to the content is truncated, in the middle of the upload or at its end.
    @Test(arguments: ResourceServer.versions, [true, false]) func recoversFromTruncatedResponseToPATCH(
        version: String, isLast: Bool
    ) async throws {
        let state = ResourceServer.State(stored: isLast ? Self.size : 40, isComplete: isLast)
        let whole = ResourceServer(version: version, "", nil).answer(to: "PATCH", state)
        for position in 0...whole.utf8.count {
            let context = "version \(version), PATCH after \(position) bytes of \(whole.utf8.count)"
            let server = ResourceServer(version: version, "PATCH", .answer(position))
            var upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in server.steps(request) }
            upload.options.creation = .separate
            if !isLast { upload.options.chunkSize = 40 }
            let attempts = try await complete(upload, context)
            #expect((1...2).contains(attempts), "\(context)")
            check(upload, server, context)
            await upload.end()
        }
    }

    /// The interim response has announced the upload, so the truncated final response to the creation does not matter.
    @Test(arguments: ResourceServer.versions.dropLast()) func recoversFromTruncatedResponseToCreation(version: String) async throws {
        let whole = ResourceServer(version: version, "", nil).answer(to: "POST", .init())
        for position in 0...whole.utf8.count {
            let context = "version \(version), POST after \(position) bytes of \(whole.utf8.count)"
            let server = ResourceServer(version: version, "POST", .answer(position))
            var upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in server.steps(request) }
            upload.options.creation = .separate
            _ = try await complete(upload, context)
            check(upload, server, context)
            await upload.end()
        }
    }

    /// The server stores half of the content, and reports this offset in a truncated interim response to `PATCH`.
    @Test(arguments: ["3", "8", "final"]) func recoversFromTruncatedProgress(version: String) async throws {
        let whole = ResourceServer.interim(version, "Upload-Offset: 50\r\n")
        for position in 0...whole.utf8.count {
            let context = "version \(version), interim response after \(position) bytes of \(whole.utf8.count)"
            let stored = Locked(0)
            var upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in
                switch request.method {
                case "POST":
                    return [
                        .raw(
                            "HTTP/1.1 201 Created\r\n\(ResourceServer.completeness(false, version))Location: /up/1\r\nContent-Length: 0\r\n\r\n"
                        )
                    ]
                case "HEAD":
                    return [
                        .raw(
                            "HTTP/1.1 204 No Content\r\n\(ResourceServer.completeness(false, version))Upload-Offset: \(stored.withLock { $0 })\r\n\r\n"
                        )
                    ]
                default:
                    let isFirst = stored.withLock { stored in
                        defer { stored = 50 }
                        return stored == 0
                    }
                    let continueSteps: [ServerStep] = request.headers["expect"] == nil ? [] : [.raw("HTTP/1.1 100 Continue\r\n\r\n")]
                    return isFirst
                        ? [.read(50), .raw(String(decoding: whole.utf8.prefix(position), as: UTF8.self)), .close]
                        : continueSteps + [
                            .read(nil), .raw("HTTP/1.1 200 OK\r\n\(ResourceServer.completeness(true, version))Content-Length: 0\r\n\r\n"),
                        ]
                }
            }
            upload.options.creation = .separate
            _ = try await complete(upload, context)
            let offsets = upload.requests.filter { $0.method == "PATCH" }.compactMap { $0.headers["upload-offset"] }
            #expect(offsets == ["0", "50"], "\(context)")
            #expect(upload.requests.flatMap(\.body) == TemporaryFile.content(size: Self.size), "\(context)")
            await upload.end()
        }
    }

    @Test(arguments: ["8", "10"]) func recoversFromTruncatedConflict(version: String) async throws {
        let whole =
            "HTTP/1.1 409 Conflict\r\n\(ResourceServer.completeness(false, version))Upload-Offset: 20\r\nContent-Length: 2\r\n\r\n{}"
        for position in 0...whole.utf8.count {
            let context = "version \(version), 409 after \(position) bytes of \(whole.utf8.count)"
            let isFirst = Locked(true)
            let server = ResourceServer(version: version, "", nil)
            var upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in
                let isCut =
                    request.method == "PATCH"
                    && isFirst.withLock { isFirst in
                        defer { isFirst = false }
                        return isFirst
                    }
                guard isCut else { return server.steps(request) }
                // The server has obtained some bytes from another source.
                server.state.withLock { $0.stored = 20 }
                return [.read(nil), .raw(String(decoding: whole.utf8.prefix(position), as: UTF8.self))]
                    + (position == whole.utf8.count ? [] : [.close])
            }
            upload.options.creation = .separate
            _ = try await complete(upload, context)
            #expect(upload.requests.last?.headers["upload-offset"] == "20" && upload.requests.last?.contentLength == 80, "\(context)")
            #expect(upload.requests.count { $0.method == "PATCH" } == 2, "\(context)")
            await upload.end()
        }
    }

    @Test func recoversFromTruncatedResponseToOPTIONS() async throws {
        guard case .raw(let whole)? = ResourceServer.options("10", limits: "max-append-size=40").first else { return }
        for position in 0...whole.utf8.count {
            let context = "OPTIONS after \(position) bytes of \(whole.utf8.count)"
            let isFirst = Locked(true)
            let answer: @Sendable () -> [ServerStep] = {
                let isCut = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst && position < whole.utf8.count
                }
                return isCut ? [.raw(String(decoding: whole.utf8.prefix(position), as: UTF8.self)), .close] : [.raw(whole)]
            }
            let server = ResourceServer(version: "10", "", nil)
            var upload = try TestUpload(size: Self.size, options: answer()) { request, _ in server.steps(request) }
            upload.endpoint.settings["dialect"] = "ietf"
            #expect(try await complete(upload, context) == (position == whole.utf8.count ? 1 : 2), "\(context)")
            #expect(upload.requests.map(\.contentLength) == [0, 40, 40, 20], "\(context)")
            check(upload, server, context)
            await upload.end()
        }
    }

    @Test func recoversFromTruncatedResponseToDELETE() async throws {
        let whole = "HTTP/1.1 204 No Content\r\nUpload-Draft-Interop-Version: 10\r\n\r\n"
        for position in 0...whole.utf8.count {
            let context = "DELETE after \(position) bytes of \(whole.utf8.count)"
            let upload = try TestUpload.resource(
                size: 1, version: "10",
                answers: [[.raw(String(decoding: whole.utf8.prefix(position), as: UTF8.self)), .close], [.answer(404)]])
            let checkpoint = checkpoint("10", upload)
            do {
                try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
                #expect(position == whole.utf8.count, "\(context)")
            } catch let error as TransferError {
                #expect(position < whole.utf8.count && error.failureClass == .transient, "\(context): \(error)")
                // The first request has removed the upload.
                try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
            }
            await upload.end()
        }
    }

    /// The server reads only the given number of bytes of one request's head. The content of the creation is so large that the client waits for
    /// 100 (Continue) before it sends the content, so the server can't have the content.
    @Test(arguments: ["OPTIONS", "POST", "HEAD", "PATCH"], [1, 4, 13, 21, 40, 80]) func recoversFromTruncatedHead(
        method: String, position: Int
    ) async throws {
        let size = 300_000
        let server = ResourceServer(version: "8", "", nil)
        let isFirst = Locked(true)
        let number = ["OPTIONS": 0, "POST": 1, "HEAD": 0, "PATCH": 1][method] ?? 0
        var upload = try TestUpload(
            size: size, options: ResourceServer.options("8"),
            headLimit: { next in
                isFirst.withLock { isFirst in
                    guard isFirst, next == number else { return nil }
                    isFirst = false
                    return position
                }
            },
            { request, _ in server.steps(request) })
        upload.endpoint.settings["dialect"] = "ietf"
        let resumes = method == "HEAD" || method == "PATCH"
        if resumes { server.state.withLock { $0.exists = true } }
        let attempts = try await complete(upload, from: resumes ? checkpoint("8", upload) : nil, "\(method) after \(position)")
        #expect((1...2).contains(attempts))
        #expect(server.state.withLock { $0.isComplete && $0.stored == size })
        #expect(upload.requests.flatMap(\.body) == TemporaryFile.content(size: size))
        #expect(upload.requests.count { $0.method == "POST" } == (resumes ? 0 : 1))
        await upload.end()
    }
}
