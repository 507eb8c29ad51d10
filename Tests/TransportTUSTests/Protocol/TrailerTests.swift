import Crypto
import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Checksums after the content (extension *checksum-trailer*).
@Suite struct TrailerTests {
    private func upload(
        size: Int = 1000, trial: [ServerStep] = [.tus(460)], now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        _ script: @escaping ScriptedServer.Script
    ) throws -> TestUpload {
        var upload = try TestUpload(
            size: size, offers: "creation,checksum,checksum-trailer", features: ["Tus-Checksum-Algorithm": "sha1,sha256"], now: now,
            trial: trial, script)
        upload.options.verification = .checksum
        return upload
    }

    private static func sha256(_ bytes: some Sequence<UInt8>) -> String {
        "sha256 \(Data(SHA256.hash(data: Array(bytes))).base64EncodedString())"
    }

    @Test(arguments: [1, 1000, 20_000_000]) func sendsAllContentInOneRequest(size: Int) async throws {
        let upload = try upload(size: size) { request, _ in [request.method == "POST" ? .created : .accepted(size)] }
        let receipt = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"])
        let request = upload.requests[1]
        #expect(request.headers["trailer"] == "Upload-Checksum")
        #expect(request.headers["upload-checksum"] == nil)
        #expect(request.headers["transfer-encoding"] == "chunked")
        #expect(request.body == TemporaryFile.content(size: size))
        #expect(request.trailers["upload-checksum"] == Self.sha256(request.body))
        #expect(receipt.checksum?.hasPrefix("sha256:") == true)
        await upload.end()
    }

    /// Some proxies drop trailers. The server then verifies nothing, so the client tests whether trailers arrive.
    @Test func testsTrailersOnceADay() async throws {
        let day = Locked(0)
        let start = ContinuousClock.now
        let upload = try upload(now: { start + .seconds(86_400) * day.withLock { $0 } }) { request, _ in
            [request.method == "POST" ? .created : request.method == "HEAD" ? .offset(300) : .accepted(1000)]
        }
        for (checkpoint, days, trials) in [(nil, 0, 1), (try upload.checkpoint(), 0, 1), (try upload.checkpoint(), 1, 2)] {
            day.withLock { $0 = days }
            _ = try await upload.run(from: checkpoint)
            #expect(upload.trials.count == trials)
        }
        let trial = try #require(upload.trials.first)
        #expect(trial.headers["upload-offset"] == "0" && trial.body.isEmpty)
        #expect(trial.trailers["upload-checksum"] != Self.sha256([]), "the checksum does not match the empty body")
        await upload.end()
    }

    /// If trailers do not arrive, the client sends the checksum before the content.
    @Test(arguments: [[ServerStep.accepted(0)], [.tus(400)], [.tus(404)], [.close], [.read(nil), .reset], [.silence]], [1, 20_000_000])
    func doesNotRelyOnDroppedTrailers(trial: [ServerStep], size: Int) async throws {
        let upload = try upload(size: size, trial: trial) { request, _ in
            if request.method == "POST" { return [.created] }
            let offset = request.headers["upload-offset"].flatMap { Int($0) } ?? 0
            return [.accepted(offset + request.contentLength)]
        }
        let receipt = try await upload.run()
        let patches = upload.server.requests.filter { $0.method == "PATCH" && $0.headers["trailer"] == nil }
        #expect(patches.flatMap(\.body) == TemporaryFile.content(size: size))
        #expect(patches.allSatisfy { $0.headers["upload-checksum"] == Self.sha256($0.body) && $0.body.count <= 8 << 20 })
        #expect(receipt.checksum?.hasPrefix("sha256:") == true)
        #expect(upload.server.requests.count { $0.headers["trailer"] != nil } == 1)
        await upload.end()
    }

    @Test func sendsNothingElseToBusyServer() async throws {
        let upload = try upload(trial: [.tus(503, ["Retry-After": "7"])]) { _, _ in [.created] }
        #expect(await upload.failure()?.retryAfter == .seconds(7))
        #expect(upload.server.requests.map(\.method) == ["OPTIONS", "POST", "PATCH"])
        await upload.end()
    }

    @Test func resumedUploadHasChecksumOfRemainingBytes() async throws {
        let upload = try upload { request, _ in [request.method == "HEAD" ? .offset(300) : .accepted(1000)] }
        let receipt = try await upload.run(from: try upload.checkpoint())
        #expect(upload.requests[1].trailers["upload-checksum"] == Self.sha256(TemporaryFile.content(size: 1000)[300...]))
        #expect(receipt.checksum == nil)
        await upload.end()
    }

    @Test func sendsAgainAfterMismatch() async throws {
        let upload = try upload { request, number in
            [request.method == "POST" ? .created : request.method == "HEAD" ? .offset(0) : number == 1 ? .tus(460) : .accepted(1000)]
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH"])
        #expect(upload.requests[3].trailers["upload-checksum"] == Self.sha256(TemporaryFile.content(size: 1000)))
        await upload.end()
    }

    @Test func readsOffsetAfterInterruption() async throws {
        let upload = try upload { request, number in
            switch number {
            case 0: [.created]
            case 1: [.read(100), .reset]
            case 2, 3: [.offset(100)]
            default: [.accepted(1000)]
            }
        }
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "HEAD", "PATCH"])
        await upload.end()
    }

    @Test func usesNoTrailersWithHTTP2() async throws {
        var upload = try upload { request, _ in [request.method == "POST" ? .created : .accepted(1000)] }
        upload.endpoint.settings["httpVersion"] = "2"
        _ = try await upload.run()
        #expect(upload.requests[1].headers["upload-checksum"] == Self.sha256(TemporaryFile.content(size: 1000)))
        await upload.end()
    }
}
