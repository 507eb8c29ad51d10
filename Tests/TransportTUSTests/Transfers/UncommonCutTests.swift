import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Connections that break at each byte of less common requests and responses. The stored content is complete, and no request is unnecessary.
@Suite struct UncommonCutTests {
    private static let size = 100

    /// Runs one attempt, and a second attempt if the first fails.
    ///
    /// - Returns: The number of attempts.
    private func complete(_ upload: TestUpload, _ context: String) async throws -> Int {
        do {
            _ = try await upload.run()
            return 1
        } catch let error as TransferError {
            #expect(error.failureClass == .transient, "\(context): \(error)")
        }
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        return 2
    }

    @Test func recoversFromTruncatedContentOfCreation() async throws {
        for position in 0...Self.size {
            let context = "POST after \(position) bytes of content"
            let server = BreakingServer(size: Self.size, "POST", .content(position))
            let upload = try TestUpload(size: Self.size, offers: "creation-with-upload") { request, _ in
                // Each creation is a separate upload.
                server.state.withLock { $0.stored = 0 }
                return server.steps(request)
            }
            #expect(try await complete(upload, context) == 2, "\(context)")
            // The second creation has no content, because the content of an interrupted creation can't be resumed.
            #expect(upload.methods == ["POST", "POST", "PATCH"], "\(context)")
            #expect(upload.featureRequests == 1, "\(context)")
            let content = TemporaryFile.content(size: Self.size)
            #expect(upload.requests.map(\.body) == [Array(content[..<position]), [], content], "\(context)")
            #expect(upload.recorder.checkpoints.map(\.confirmed) == [0, 0, 0, 100], "\(context)")
            await upload.end()
        }
    }

    /// The server may or may not store content whose checksum did not arrive.
    @Test(arguments: [true, false]) func recoversFromTruncatedContentBeforeTrailer(keeps: Bool) async throws {
        // One chunk with its length in hexadecimal, the last chunk of length zero, the trailer, and an empty line (RFC 9112, section 7.1).
        let head = "64\r\n".utf8.count
        let checksum = "Upload-Checksum: sha256 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\r\n".utf8.count
        let whole = head + Self.size + "\r\n".utf8.count + "0\r\n".utf8.count + checksum + "\r\n".utf8.count
        for position in 0...whole {
            let context = "PATCH after \(position) bytes of \(whole), keeping: \(keeps)"
            let storedCount = position == whole ? Self.size : keeps ? min(max(0, position - head), Self.size) : 0
            let server = BreakingServer(size: Self.size, "PATCH", .chunk(position, keeping: storedCount))
            var upload = try TestUpload(
                size: Self.size, offers: "creation,checksum,checksum-trailer", features: ["Tus-Checksum-Algorithm": "sha256"]
            ) { request, _ in server.steps(request) }
            upload.options.verification = .checksum
            let attempts = try await complete(upload, context)
            let patches = upload.requests.filter { $0.method == "PATCH" }
            #expect(patches.allSatisfy { $0.isChunked && $0.headers["trailer"] == "Upload-Checksum" }, "\(context)")
            if storedCount == Self.size {
                #expect(attempts == 1 && upload.methods == ["POST", "PATCH", "HEAD"], "\(context): the upload is complete")
            } else {
                let methods = ["POST", "PATCH", "HEAD"] + (attempts == 1 ? [] : ["HEAD"]) + ["PATCH"]
                #expect(upload.methods == methods, "\(context)")
                #expect(patches.last?.headers["upload-offset"] == "\(storedCount)", "\(context)")
                #expect(patches.last?.body == Array(TemporaryFile.content(size: Self.size)[storedCount...]), "\(context)")
                #expect(patches.last?.trailers["upload-checksum"]?.hasPrefix("sha256 ") == true, "\(context)")
            }
            await upload.end()
        }
    }

    /// The client ignores a truncated response to `OPTIONS`, regardless of how much of the list of extensions has arrived.
    @Test func recoversFromTruncatedResponseToOPTIONS() async throws {
        let whole = "HTTP/1.1 204 No Content\r\nTus-Version: 1.0.0\r\nTus-Extension: creation,creation-with-upload\r\n\r\n"
        for position in 0...whole.utf8.count {
            let context = "OPTIONS after \(position) bytes of \(whole.utf8.count)"
            let isFirst = Locked(true)
            let answer: @Sendable () -> [ServerStep] = {
                let isCut = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                let isWhole = !isCut || position == whole.utf8.count
                return isWhole ? [.raw(whole)] : [.raw(String(decoding: whole.utf8.prefix(position), as: UTF8.self)), .close]
            }
            let upload = try TestUpload(size: Self.size, options: answer()) { request, _ in
                [.tus(201, ["Location": "/files/1", "Upload-Offset": "\(request.contentLength)"])]
            }
            #expect(try await complete(upload, context) == (position == whole.utf8.count ? 1 : 2), "\(context)")
            #expect(upload.featureRequests == (position == whole.utf8.count ? 1 : 2), "\(context)")
            #expect(upload.methods == ["POST"], "\(context)")
            #expect(upload.requests.first?.body == TemporaryFile.content(size: Self.size), "\(context)")
            await upload.end()
        }
    }

    @Test(arguments: ["HTTP/1.1 204 No Content\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"])
    func recoversFromTruncatedResponseToDELETE(start: String) async throws {
        let head = start + "Tus-Resumable: 1.0.0\r\n\r\n"
        let whole = head + (start.contains("Content-Length") ? "ok" : "")
        for position in 0...whole.utf8.count {
            let context = "DELETE after \(position) bytes of \(whole.utf8.count)"
            let upload = try TestUpload(
                size: 1, answers: [[.raw(String(decoding: whole.utf8.prefix(position), as: UTF8.self)), .close], [.tus(404)]])
            let checkpoint = try upload.checkpoint()
            do {
                try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
                #expect(position >= head.utf8.count, "\(context)")
                #expect(upload.methods == ["DELETE"], "\(context)")
            } catch let error as TransferError {
                #expect(position < whole.utf8.count, "\(context): \(error)")
                #expect(error.failureClass == .transient, "\(context): \(error)")
                // The first request has removed the upload.
                try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
                #expect(upload.methods == ["DELETE", "DELETE"], "\(context)")
            }
            await upload.end()
        }
    }

    /// The client does not know the result of the first concatenation. It checks that all segments are complete, and then repeats the
    /// concatenation.
    @Test func recoversFromTruncatedResponseToConcatenation() async throws {
        let head = "HTTP/1.1 201 Created\r\nLocation: /files/3\r\nTus-Resumable: 1.0.0\r\nContent-Length: 2\r\n\r\n"
        let whole = head + "ok"
        for position in 0...whole.utf8.count {
            let context = "POST of the final upload after \(position) bytes of \(whole.utf8.count)"
            let server = ConcatenationTests.Server()
            let isFirst = Locked(true)
            var upload = try TestUpload(size: Self.size, offers: "creation,concatenation") { request, _ in
                let steps = server.answer(request)
                guard request.headers["upload-concat"]?.hasPrefix("final;") == true else { return steps }
                let isCut = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                return isCut ? [.raw(String(decoding: whole.utf8.prefix(position), as: UTF8.self)), .close] : steps
            }
            upload.endpoint.settings["parallelThreshold"] = "1"
            upload.options.segmentsPerFile = 2
            let attempts = try await complete(upload, context)
            #expect(attempts == (position == whole.utf8.count ? 1 : 2), "\(context)")
            let finals = upload.requests.indices.filter { upload.requests[$0].headers["upload-concat"]?.hasPrefix("final;") == true }
            #expect(finals.count == attempts, "\(context)")
            if finals.count == 2 { #expect(upload.methods[(finals[0] + 1)..<finals[1]] == ["HEAD", "HEAD"], "\(context)") }
            #expect(upload.requests.count { $0.method == "PATCH" } == 2, "\(context): no content is sent twice")
            #expect(upload.recorder.checkpoints.last?.confirmed == Int64(Self.size), "\(context)")
            await upload.end()
        }
    }

    /// The client does not request bytes that it has already received.
    @Test func recoversFromTruncatedResponseToGET() async throws {
        let content = "0123456789"
        let head = "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: \(content.utf8.count)\r\n\r\n"
        let whole = head + content
        for position in 0...whole.utf8.count {
            let context = "GET after \(position) bytes of \(whole.utf8.count)"
            let received = max(0, position - head.utf8.count)
            let rest = String(content.dropFirst(received))
            let download = try TestDownload(answers: [
                [.raw(String(decoding: whole.utf8.prefix(position), as: UTF8.self)), .close],
                received == 0
                    ? [.raw(whole)] : [.answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes \(received)-9/10"], body: rest)],
            ])
            let failure = await download.failure()
            if received == content.utf8.count {
                #expect(failure == nil, "\(context)")
            } else {
                #expect(failure?.failureClass == .transient, "\(context): \(String(describing: failure))")
                #expect(!download.isInPlace, "\(context)")
                _ = try await download.run(from: download.recorder.checkpoints.last)
                #expect(download.server.requests.last?.headers["range"] == (received == 0 ? nil : "bytes=\(received)-"), "\(context)")
            }
            #expect(download.isInPlace && download.content == content, "\(context)")
            await download.end()
        }
    }
}
