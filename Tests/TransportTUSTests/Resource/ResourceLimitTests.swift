import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Limits, digests and streams with the IETF protocol *Resumable Uploads for HTTP*.
@Suite struct ResourceLimitTests {
    private static let done: [ServerStep] = [.answer(200, ["Upload-Complete": "?1"])]

    @Test(arguments: [("max-size=9", TransferError.Code.tooLarge), ("min-size=11", .rejected)])
    func rejectsFileBeforeCreation(limits: String, code: TransferError.Code) async throws {
        let upload = try TestUpload.resource(size: 10, limits: limits, answers: [])
        let error = await upload.failure()
        #expect(error?.code == code && error?.failureClass == .unsupported)
        #expect(upload.methods.isEmpty)
        await upload.end()
    }

    /// The server announces the limit while the content is being sent. The client ends the request, and removes the upload.
    @Test func stopsIfInterimResponseExcludesFile() async throws {
        let upload = try TestUpload.resource(size: 64 << 20) { request, _ in
            request.method == "DELETE"
                ? [.answer(204)]
                : [
                    .raw(ResourceServer.interim("8", "Location: /up/1\r\nUpload-Limit: max-size=1000000\r\n")),
                    .raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(1000), .silence,
                ]
        }
        let error = await upload.failure()
        #expect(error?.code == .tooLarge)
        #expect(upload.requests.map { "\($0.method) \($0.path)" } == ["POST /files/", "DELETE /up/1"])
        await upload.end()
    }

    /// The server announces no limit before it rejects the request.
    @Test(arguments: [true, false]) func sendsSmallerRequestsAfter413(hasLimit: Bool) async throws {
        let size = 1 << 20
        let upload = try TestUpload.resource(size: size) { request, _ in
            if request.contentLength > 400_000 { return [.answer(413, hasLimit ? ["Upload-Limit": "max-append-size=400000"] : [:])] }
            if request.method == "HEAD" { return [.answer(204, ["Upload-Offset": "0"])] }
            if request.method == "POST" { return [.answer(201, ["Location": "/up/1"])] }
            return request.headers["upload-complete"] == "?1" ? Self.done : [.answer(204)]
        }
        _ = try await upload.run()
        let sizes = upload.requests.filter { $0.method == "PATCH" && $0.contentLength <= 400_000 }.map(\.contentLength)
        #expect(sizes.reduce(0, +) == size)
        if hasLimit { #expect(upload.methods == ["POST", "POST", "PATCH", "PATCH", "PATCH"] && sizes == [400_000, 400_000, 248_576]) }
        await upload.end()
    }

    /// The limits in a later response replace earlier limits, unless they are invalid.
    @Test func followsChangedLimits() async throws {
        let upload = try TestUpload.resource(size: 100, limits: "max-append-size=40") { request, number in
            switch number {
            case 0: [.answer(201, ["Location": "/up/1"])]
            case 1: [.answer(204, ["Upload-Limit": "max-append-size=10, unknown=\"x\""])]
            case 2: [.answer(204, ["Upload-Limit": "max-append-size=\"100\""])]
            case 3: [.answer(204, ["Upload-Limit": "max-append-size=100"])]
            default: Self.done
            }
        }
        _ = try await upload.run()
        #expect(upload.requests.map(\.contentLength) == [0, 40, 10, 10, 40])
        await upload.end()
    }

    /// The client measures the age of the upload with the `Date` headers of the server.
    @Test func restartsExpiredUpload() async throws {
        let date = "Wed, 25 Jun 2014 15:00:00 GMT"
        let upload = try TestUpload.resource(
            size: 8 << 20,
            answers: [
                [
                    .answer(
                        201,
                        ["Location": "/up/1", "Upload-Limit": "max-age=3600", "Date": date, "Upload-Complete": "?0", "Upload-Offset": "0"])
                ],
                [.read(10), .reset], [.answer(503)],
                [.answer(204, ["Upload-Offset": "10", "Date": "Wed, 25 Jun 2014 16:00:01 GMT"])],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.recorder.checkpoints.last?.expiresAt == Date(timeIntervalSince1970: 1_403_712_000))
        let error = await upload.failure(from: upload.recorder.checkpoints.last)
        #expect(error?.failureClass == .resumeLost && error?.message.contains("expired") == true)
        await upload.end()
    }

    @Test(arguments: ["right", "wrong", "none"]) func comparesDigest(reported: String) async throws {
        let content = TemporaryFile.content(size: 10)
        let own = "sha-256=:\(Data(SHA256Digest.of(content)).base64EncodedString()):"
        var upload = try TestUpload.resource(size: 10) { request, _ in
            let digest =
                ["right": own, "wrong": "sha-256=:\(Data(count: 32).base64EncodedString()):"][reported].map { ["Repr-Digest": $0] } ?? [:]
            return [.answer(request.method == "HEAD" ? 204 : 200, ["Upload-Complete": "?1"].merging(digest) { $1 })]
        }
        upload.options.verification = .checksum
        let request: ReceivedRequest
        switch reported {
        case "right": #expect(try await upload.run().checksum?.hasPrefix("sha256:") == true)
        case "wrong": #expect(await upload.failure()?.code == .checksumMismatch)
        default: #expect(await upload.failure()?.failureClass == .unsupported)
        }
        request = try #require(upload.requests.first)
        #expect(request.headers["repr-digest"] == own && request.headers["content-digest"] == own)
        #expect(request.headers["want-repr-digest"] == "sha-256=10")
        await upload.end()
    }

    /// Each request of a stream except the last has at least the minimum size, and at most the maximum size.
    @Test func limitsRequestsOfStream() async throws {
        let server = ResourceServer(version: "8", "", nil)
        let upload = try TestUpload.resource(size: 100, limits: "min-append-size=20, max-append-size=30") { request, _ in
            server.steps(request)
        }
        let stream = try TestStream(upload.file, total: 100, ahead: 50)
        #expect(try await upload.run(source: stream.source).bytes == 100)
        let sizes = upload.requests.filter { $0.method == "PATCH" }.map(\.contentLength)
        #expect(sizes.reduce(0, +) == 100 && sizes.dropLast().allSatisfy { (20...30).contains($0) }, "\(sizes)")
        await upload.end()
    }

    /// The creation request of a stream has no content, and declares the length only if the length is known. Only the last request completes
    /// the upload.
    @Test(arguments: ResourceServer.versions, [nil, 100] as [Int?]) func sendsStream(version: String, length: Int?) async throws {
        let server = ResourceServer(version: version, "", nil)
        let upload = try TestUpload.resource(size: 100, version: version) { request, _ in server.steps(request) }
        let stream = try TestStream(upload.file, total: 100, ahead: 30, length: length)
        #expect(try await upload.run(source: stream.source).bytes == 100)
        #expect(upload.requests.first?.contentLength == 0)
        #expect(upload.requests.first?.headers["upload-length"] == length.map { "\($0)" })
        let isLast = { (request: ReceivedRequest) in
            request.headers["upload-complete"] == "?1" || request.headers["upload-incomplete"] == "?0"
        }
        #expect(upload.requests.filter(isLast).count == 1 && upload.requests.last.map(isLast) == true)
        #expect(upload.requests.map(\.contentLength).reduce(0, +) == 100)
        #expect(!stream.wasRequested.withLock { $0 }, "the stream is sent while it grows")
        await upload.end()
    }
}
