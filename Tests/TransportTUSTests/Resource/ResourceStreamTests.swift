import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Streams with the verification `checksum`. Each request has the checksum of its content, and the last request also has the checksum of the whole
/// stream.
@Suite struct ResourceStreamTests {
    private static let size = 100

    private static func digest(_ bytes: [UInt8]) -> String { "sha-256=:\(Data(SHA256Digest.of(bytes)).base64EncodedString()):" }

    private func upload(
        _ server: ResourceServer, reported: String? = ResourceStreamTests.digest(TemporaryFile.content(size: ResourceStreamTests.size))
    ) throws -> TestUpload {
        var upload = try TestUpload.resource(size: Self.size, version: server.version) { request, _ in
            let steps = server.steps(request)
            guard let reported, request.headers["want-repr-digest"] != nil else { return steps }
            return steps.map { step in
                guard case .raw(let text) = step, text.contains("200 OK") || request.method == "HEAD" else { return step }
                return .raw(text.replacing("\r\n", with: "\r\nRepr-Digest: \(reported)\r\n", maxReplacements: 1))
            }
        }
        upload.options.verification = .checksum
        return upload
    }

    @Test(arguments: ResourceServer.versions, [nil, 100] as [Int?]) func comparesDigest(version: String, length: Int?) async throws {
        let upload = try upload(ResourceServer(version: version, "", nil))
        let stream = try TestStream(upload.file, total: Self.size, ahead: 30, length: length)
        let receipt = try await upload.run(source: stream.source)
        let content = TemporaryFile.content(size: Self.size)
        let checksum = SHA256Digest.of(content).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        #expect(receipt.checksum == "sha256:\(checksum)" && receipt.bytes == 100 && receipt.warnings.isEmpty)
        let patches = upload.requests.filter { $0.method == "PATCH" }
        #expect(patches.count > 1 && patches.flatMap(\.body) == content)
        #expect(patches.allSatisfy { $0.headers["content-digest"] == Self.digest($0.body) })
        #expect(patches.map { $0.headers["repr-digest"] } == patches.dropLast().map { _ in nil } + [Self.digest(content)])
        #expect(patches.last?.headers["want-repr-digest"] == "sha-256=10")
        #expect(!stream.wasRequested.withLock { $0 }, "the stream is sent while it grows")
        await upload.end()
    }

    @Test func verifiesEmptyStream() async throws {
        let server = ResourceServer(version: "10", "", nil)
        let upload = try upload(server, reported: Self.digest([]))
        let stream = try TestStream(upload.file, total: 0, ahead: 1)
        #expect(try await upload.run(source: stream.source).checksum?.hasPrefix("sha256:e3b0c442") == true)
        await upload.end()
    }

    @Test func failsIfDigestDiffers() async throws {
        let upload = try upload(ResourceServer(version: "10", "", nil), reported: Self.digest([]))
        let stream = try TestStream(upload.file, total: Self.size, ahead: 30)
        let error = await upload.failure(source: stream.source)
        #expect(error?.code == .checksumMismatch, "\(String(describing: error))")
        await upload.end()
    }

    @Test func failsWithoutDigest() async throws {
        let upload = try upload(ResourceServer(version: "10", "", nil), reported: nil)
        let stream = try TestStream(upload.file, total: Self.size, ahead: 30)
        let error = await upload.failure(source: stream.source)
        #expect(error?.failureClass == .unsupported && error?.message.contains("Repr-Digest") == true)
        await upload.end()
    }

    @Test func requestsDigestAfterLostResponse() async throws {
        let server = ResourceServer(version: "10", "", nil)
        let upload = try upload(server)
        let isEndKnown = Locked(false)
        let stream = try TestStream(upload.file, total: Self.size, ahead: 30) {
            // The end becomes known when fewer than 30 bytes are unconfirmed. The next request sends these bytes, so its response is the
            // last response.
            if isEndKnown.withLock({ isEndKnown in
                defer { isEndKnown = true }
                return !isEndKnown
            }) {
                server.state.withLock { $0.cut = ("PATCH", .answer(0)) }
            }
        }
        let receipt = try await upload.run(source: stream.source)
        #expect(receipt.checksum?.hasPrefix("sha256:") == true)
        #expect(upload.methods.suffix(3) == ["PATCH", "HEAD", "HEAD"])
        #expect(upload.requests.last?.headers["want-repr-digest"] == "sha-256=10")
        await upload.end()
    }

    /// Confirmed bytes of a stream can't be read again, so after an interruption only the checksums of the requests remain. The receipt contains no
    /// checksum of the whole stream.
    @Test(arguments: ["6", "10"]) func warnsIfInterruptedStreamIsUnverified(version: String) async throws {
        let server = ResourceServer(version: version, "", nil)
        let upload = try upload(server)
        let stream = try TestStream(upload.file, total: Self.size, ahead: 60)
        server.state.withLock { $0.cut = ("PATCH", .content(20)) }
        #expect(await upload.failure(source: stream.source)?.failureClass == .transient)
        let receipt = try await upload.run(from: upload.recorder.checkpoints.last, source: stream.source)
        #expect(receipt.bytes == 100 && receipt.checksum == nil)
        #expect(receipt.warnings.count == 1 && receipt.warnings[0].contains("unverified"), "\(receipt.warnings)")
        let patches = upload.requests.filter { $0.method == "PATCH" }
        #expect(patches.allSatisfy { $0.headers["content-digest"] != nil && $0.headers["repr-digest"] == nil })
        #expect(server.state.withLock { $0.stored == 100 && $0.isComplete })
        await upload.end()
    }
}
