import Crypto
import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Streams of an app. The client sends the length of a stream as soon as it is known. The client never sends a confirmed byte again, and
/// all produced bytes arrive.
@Suite struct StreamTests {
    private static let total = 10
    private static let offers = "creation,creation-with-upload,creation-defer-length"

    private func upload(
        _ server: StreamServer, offers: String = StreamTests.offers, features: [String: String] = [:], size: Int = StreamTests.total
    ) throws -> TestUpload {
        try TestUpload(size: size, offers: offers, features: features) { request, _ in server.steps(request) }
    }

    /// Checks the length, and that the content of each request matches its offset.
    private func check(_ upload: TestUpload, _ server: StreamServer, _ context: String = "", size: Int = StreamTests.total) {
        #expect(server.isComplete, "\(context)")
        #expect(server.state.withLock { $0.stored } == size, "\(context)")
        let content = TemporaryFile.content(size: size)
        for request in upload.requests where request.method == "PATCH" {
            let offset = request.headers["upload-offset"].flatMap { Int($0) } ?? 0
            #expect(Array(content[offset...].prefix(request.body.count)) == request.body, "\(context): from \(offset)")
            if let length = request.headers["upload-length"] { #expect(length == "\(size)", "\(context)") }
        }
    }

    /// Runs at most three attempts, until the stream is complete.
    private func complete(_ upload: TestUpload, _ stream: TestStream, _ context: String) async throws -> TransferReceipt {
        var checkpoint: Checkpoint?
        for _ in 0..<3 {
            do {
                return try await upload.run(from: checkpoint, source: stream.source)
            } catch let error as TransferError {
                #expect(error.failureClass == .transient, "\(context): \(error)")
                checkpoint = upload.recorder.checkpoints.last
            }
        }
        struct TooManyAttempts: Error {}
        throw TooManyAttempts()
    }

    /// The client rejects every reported offset beyond the end, however large.
    @Test func rejectsOffsetBeyondEnd() async throws {
        var upload = try TestUpload(
            size: Self.total, offers: Self.offers + ",checksum", features: ["Tus-Checksum-Algorithm": "sha256"]
        ) { _, _ in [.offset(.max - 1)] }
        upload.options.verification = .checksum
        let stream = try TestStream(upload.file, total: Self.total, ahead: 4)
        let checkpoint = try upload.checkpoint()
        #expect(await upload.failure(from: checkpoint, source: stream.source)?.failureClass == .resumeLost)
        #expect(upload.recorder.checkpoints.isEmpty)
        await upload.end()
    }

    /// The end becomes known with the last bytes, after the last bytes, or before the first bytes.
    @Test(
        arguments: [
            (4, [4, 4, 2], [nil, nil, "10"]), (5, [5, 5, 0], [nil, nil, "10"]), (10, [10, 0], [nil, "10"]), (11, [10], [nil]),
        ] as [(Int, [Int], [String?])])
    func sendsLengthWhenItBecomesKnown(ahead: Int, sizes: [Int], lengths: [String?]) async throws {
        let server = StreamServer()
        let upload = try upload(server)
        let stream = try TestStream(upload.file, total: Self.total, ahead: ahead)
        let receipt = try await upload.run(source: stream.source)
        #expect(receipt.bytes == 10)
        let creation = try #require(upload.requests.first)
        #expect(creation.headers["upload-defer-length"] == (ahead > Self.total ? nil : "1"))
        #expect(creation.headers["upload-length"] == (ahead > Self.total ? "10" : nil))
        let patches = upload.requests.dropFirst()
        #expect(patches.allSatisfy { $0.method == "PATCH" })
        #expect(patches.map(\.body.count) == sizes)
        #expect(patches.map { $0.headers["upload-length"] } == lengths)
        #expect(stream.wasRequested.withLock { !$0 })
        #expect(upload.recorder.progress.last.map { [$0.sent, $0.confirmed] } == [10, 10])
        check(upload, server)
        await upload.end()
    }

    @Test(arguments: [nil, 0] as [Int?]) func uploadsEmptyStream(length: Int?) async throws {
        let server = StreamServer()
        let upload = try upload(server, size: 0)
        let stream = try TestStream(upload.file, total: 0, ahead: length == nil ? 1 : 0, length: length)
        // If the length is known, the app may report the end of the stream later.
        if length != nil { stream.source.growth?.update(.complete(0)) }
        #expect(try await upload.run(source: stream.source).bytes == 0)
        #expect(upload.methods == ["POST"])
        #expect(upload.requests.first?.headers["upload-length"] == "0")
        check(upload, server, size: 0)
        await upload.end()
    }

    /// The end is known only after the creation.
    @Test func uploadsEmptyStreamThatEndsLate() async throws {
        let growth = SourceGrowth(.growing(0))
        let server = StreamServer()
        let upload = try TestUpload(size: 0, offers: Self.offers) { request, _ in
            growth.update(.complete(0))
            return server.steps(request)
        }
        let file = try upload.file.source
        let receipt = try await upload.run(source: UploadSource(path: file.path, identity: file.identity, growth: growth))
        #expect(receipt.bytes == 0)
        #expect(upload.methods == ["POST", "PATCH"])
        check(upload, server, size: 0)
        await upload.end()
    }

    @Test func sendsKnownLengthWithCreation() async throws {
        let server = StreamServer()
        let upload = try upload(server)
        let stream = try TestStream(upload.file, total: Self.total, ahead: 4, length: Self.total)
        _ = try await upload.run(source: stream.source)
        #expect(upload.requests.map { $0.headers["upload-length"] } == ["10", nil, nil, nil])
        #expect(upload.requests[0].headers["upload-defer-length"] == nil)
        check(upload, server)
        await upload.end()
    }

    /// The client waits for the end of the stream before the first request that needs the length, and sends the length once.
    @Test(arguments: [nil, 4] as [Int64?]) func waitsForEndIfServerNeedsLength(chunkSize: Int64?) async throws {
        let server = StreamServer(requiresLengthFirst: true)
        var upload = try upload(server)
        upload.options.chunkSize = chunkSize
        let stream = try TestStream(upload.file, total: Self.total, ahead: 3)
        _ = try await upload.run(source: stream.source)
        #expect(stream.wasRequested.withLock { $0 })
        let lengths = upload.requests.map { $0.headers["upload-length"] }
        if chunkSize == nil {
            #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH"])
            #expect(lengths == [nil, nil, nil, "10"])
        } else {
            #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH", "PATCH", "PATCH"])
            #expect(lengths == [nil, nil, nil, "10", nil, nil], "the length is sent once")
        }
        check(upload, server)
        await upload.end()
    }

    @Test func failsIfServerAcceptsNoLength() async throws {
        let upload = try TestUpload(size: Self.total, offers: Self.offers) { request, _ in
            [request.method == "POST" ? .created : request.method == "HEAD" ? .offset(0) : .tus(400)]
        }
        let stream = try TestStream(upload.file, total: Self.total, ahead: 3)
        #expect(await upload.failure(source: stream.source)?.failureClass == .transient)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH", "HEAD"])
        #expect(await upload.failure(from: upload.recorder.checkpoints.last, source: stream.source)?.failureClass == .permanent)
        #expect(upload.methods.dropFirst(5) == ["HEAD", "PATCH", "HEAD"], "an attempt that has sent the length sends no second PATCH")
        await upload.end()
    }

    @Test func waitsForEndWithoutExtension() async throws {
        let order = Locked<[String]>([])
        let server = StreamServer()
        let upload = try TestUpload(size: Self.total, offers: "creation,creation-with-upload") { request, _ in
            order.withLock { $0.append(request.method) }
            return server.steps(request)
        }
        let stream = try TestStream(upload.file, total: Self.total, ahead: 3, onEnd: { order.withLock { $0.append("end") } })
        _ = try await upload.run(source: stream.source)
        #expect(order.withLock { $0 }.prefix(3) == ["end", "POST", "PATCH"])
        #expect(upload.requests.map { $0.headers["upload-length"] } == ["10", nil])
        check(upload, server)
        await upload.end()
    }

    /// The server announces the extension without supporting it.
    @Test func waitsForEndIfDeferralIsRejected() async throws {
        let server = StreamServer()
        let upload = try TestUpload(size: Self.total, offers: Self.offers) { request, _ in
            request.headers["upload-defer-length"] == nil ? server.steps(request) : [.tus(400)]
        }
        let stream = try TestStream(upload.file, total: Self.total, ahead: 3)
        _ = try await upload.run(source: stream.source)
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        check(upload, server)
        await upload.end()
    }

    @Test(arguments: [(offers, ["POST", "PATCH", "PATCH"]), ("creation", [])]) func reportsFailureOfProducer(
        offers: String, methods: [String]
    ) async throws {
        let failure = TransferError(.sourceLost, .producerGone, "The tape tore.")
        let server = StreamServer()
        let upload = try upload(server, offers: offers)
        let stream = try TestStream(upload.file, total: Self.total - 2, ahead: 4, end: .failed(failure))
        #expect(await upload.failure(source: stream.source) == failure)
        #expect(upload.methods == methods)
        #expect(!server.isComplete, "an incomplete stream is never a complete upload")
        #expect(upload.requests.allSatisfy { $0.headers["upload-length"] == nil })
        await upload.end()
    }

    @Test func nextAttemptReportsFailureOfProducer() async throws {
        let failure = TransferError(.sourceLost, .producerGone, "The tape tore.")
        let server = StreamServer(cut: 5)
        let upload = try upload(server)
        let stream = try TestStream(upload.file, total: 8, ahead: 4, end: .failed(failure))
        #expect(await upload.failure(source: stream.source)?.failureClass == .transient)
        #expect(await upload.failure(from: upload.recorder.checkpoints.last, source: stream.source) == failure)
        #expect(upload.methods == ["POST", "PATCH", "PATCH", "HEAD", "HEAD"])
        #expect(!server.isComplete)
        await upload.end()
    }

    /// After a connection breaks at any byte, a later attempt resumes at that byte. The later attempt must not read confirmed bytes again,
    /// because these bytes have been overwritten.
    @Test(arguments: [3, 4, 5, 10, 11]) func resumesStreamInterruptedAtAnyByte(ahead: Int) async throws {
        for position in 0...Self.total {
            let context = "\(ahead) ahead, cut after \(position) bytes"
            let server = StreamServer(cut: position)
            let upload = try upload(server)
            let stream = try TestStream(upload.file, total: Self.total, ahead: ahead)
            #expect(try await complete(upload, stream, context).bytes == 10)
            #expect(upload.methods.count { $0 == "POST" } == 1, "\(context)")
            check(upload, server, context)
            let sent = upload.requests.filter { $0.method == "PATCH" }.map(\.body.count).reduce(0, +)
            #expect(sent == Self.total, "\(context): \(upload.methods)")
            await upload.end()
        }
    }

    /// The response to the request with the length is lost. The server may or may not have stored the length.
    @Test(arguments: [true, false], [4, 5]) func sendsLengthAgainAfterLostResponse(isKept: Bool, ahead: Int) async throws {
        let server = StreamServer(keepsLengthAtCut: isKept)
        let upload = try upload(server)
        let stream = try TestStream(upload.file, total: Self.total, ahead: ahead)
        #expect(try await complete(upload, stream, "").bytes == 10)
        check(upload, server)
        let requestsWithLength = upload.requests.filter { $0.headers["upload-length"] != nil }
        #expect(requestsWithLength.count == (isKept ? 1 : 2))
        if !isKept { #expect(requestsWithLength.last?.body.isEmpty == true) }
        await upload.end()
    }

    @Test(arguments: [4, 5], [0, 1]) func eachRequestHasChecksum(ahead: Int, mismatches: Int) async throws {
        let server = StreamServer(mismatches: mismatches)
        var upload = try upload(server, offers: Self.offers + ",checksum", features: ["Tus-Checksum-Algorithm": "sha1,sha256"])
        upload.options.verification = .checksum
        let stream = try TestStream(upload.file, total: Self.total, ahead: ahead)
        let receipt = try await upload.run(source: stream.source)
        let patches = upload.requests.filter { $0.method == "PATCH" }
        #expect(patches.count == 3 + mismatches)
        #expect(patches.allSatisfy { $0.headers["upload-checksum"] == Self.header($0.body) })
        #expect(receipt.checksum == Self.checksum(TemporaryFile.content(size: Self.total)))
        check(upload, server)
        await upload.end()
    }

    @Test(arguments: [4, 5, 10, 11]) func sendsChecksumsInTrailers(ahead: Int) async throws {
        var upload = try TestUpload(
            size: Self.total, offers: Self.offers + ",checksum,checksum-trailer", features: ["Tus-Checksum-Algorithm": "sha256"]
        ) { request, _ in
            guard request.method == "PATCH" else { return [.created] }
            let offset = request.headers["upload-offset"].flatMap { Int($0) } ?? 0
            // The request is chunked, so the size of the body is unknown before its end.
            return [.read(nil), .accepted(min(Self.total, offset + ahead))]
        }
        upload.options.verification = .checksum
        let stream = try TestStream(upload.file, total: Self.total, ahead: ahead)
        let receipt = try await upload.run(source: stream.source)
        let patches = upload.requests.filter { $0.method == "PATCH" }
        #expect(patches.flatMap(\.body) == TemporaryFile.content(size: Self.total))
        for patch in patches {
            let checksum = patch.trailers["upload-checksum"] ?? patch.headers["upload-checksum"]
            #expect(checksum == Self.header(patch.body))
        }
        // A checksum of the whole stream exists only if one request contained all content.
        #expect(receipt.checksum == (ahead >= Self.total ? Self.checksum(TemporaryFile.content(size: Self.total)) : nil))
        await upload.end()
    }

    private static func header(_ bytes: [UInt8]) -> String { "sha256 \(Data(SHA256.hash(data: bytes)).base64EncodedString())" }

    private static func checksum(_ bytes: [UInt8]) -> String {
        "sha256:" + SHA256.hash(data: bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// The size of the stream becomes known too late for the client to reject the stream before its first byte.
    @Test func failsIfStreamExceedsMaximumSize() async throws {
        let server = StreamServer()
        let upload = try upload(server, features: ["Tus-Max-Size": "7"])
        let stream = try TestStream(upload.file, total: Self.total, ahead: 4)
        let error = await upload.failure(source: stream.source)
        #expect(error?.failureClass == .unsupported)
        #expect(error?.code == .tooLarge)
        #expect(upload.methods == ["POST", "PATCH"], "no byte beyond the limit is sent")
        await upload.end()
    }
}
