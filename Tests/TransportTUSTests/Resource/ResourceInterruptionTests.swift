import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Interrupted uploads with the IETF protocol *Resumable Uploads for HTTP*.
@Suite struct ResourceInterruptionTests {
    private struct Saved: Decodable {
        var url: String?
        var confirmed: Int64?
        var mayBeComplete: Bool?
        var dialect: String?
    }

    private func saved(_ checkpoint: Checkpoint?) throws -> Saved {
        try JSONDecoder().decode(Saved.self, from: try #require(checkpoint).data)
    }

    /// The server sends nothing else until the checkpoint with the upload's URL is saved. The content is larger than all buffers on the network path.
    @Test(arguments: ["3", "6", "8", "10"]) func savesURLWhileContentIsSent(version: String) async throws {
        let isSaved = DispatchSemaphore(value: 0)
        let size = 32 << 20
        let upload = try TestUpload.resource(size: size, version: version) { request, _ in
            switch request.method {
            case "POST":
                [
                    .raw(ResourceServer.interim(version)), .raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(1 << 20),
                    .call { isSaved.wait() }, .raw(ResourceServer.interim(version, "Upload-Offset: 1048576\r\n")),
                    .call { isSaved.wait() }, .reset,
                ]
            case "HEAD": [.raw("HTTP/1.1 204 No Content\r\n\(ResourceServer.completeness(false, version))Upload-Offset: 2097152\r\n\r\n")]
            default:
                [
                    .raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(nil),
                    .raw("HTTP/1.1 200 OK\r\n\(ResourceServer.completeness(true, version))Content-Length: 0\r\n\r\n"),
                ]
            }
        }
        let observer = Task {
            var seen: [Int64] = []
            for await checkpoint in upload.recorder.saved {
                guard let saved = try? JSONDecoder().decode(Saved.self, from: checkpoint.data), saved.url != nil else { continue }
                guard let confirmed = saved.confirmed, !seen.contains(confirmed) else { continue }
                seen.append(confirmed)
                isSaved.signal()
            }
            return seen
        }
        #expect(await upload.failure()?.failureClass == .transient)
        upload.recorder.end()
        #expect(await observer.value.prefix(2) == [0, 1_048_576], "the interim offset counts as confirmed")
        let checkpoint = upload.recorder.checkpoints.last
        #expect(try saved(checkpoint).url == upload.server.url("/up/1"))
        #expect(try saved(checkpoint).mayBeComplete == nil, "not all content was sent")
        #expect(checkpoint?.confirmed == 1_048_576)
        #expect(try await upload.run(from: checkpoint).bytes == Int64(size))
        #expect(upload.methods == ["POST", "HEAD", "PATCH"])
        #expect(upload.requests.last?.headers["upload-offset"] == "2097152")
        #expect(upload.requests.last?.contentLength == size - (2 << 20))
        await upload.end()
    }

    /// The response is lost after the server has processed the file.
    @Test(arguments: ResourceServer.versions) func lostFinalResponseCreatesNoSecondUpload(version: String) async throws {
        let server = ResourceServer(version: version, "POST", .answer(0))
        let upload = try TestUpload.resource(size: 100, version: version) { request, _ in server.steps(request) }
        let first = await upload.failure()
        // If the server does not name its version, the client sends the content of the first file in a second request.
        guard version != "final" else { return await upload.end() }
        #expect(first?.failureClass == .transient)
        #expect(try saved(upload.recorder.checkpoints.last).mayBeComplete == true)
        let receipt = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.methods == ["POST", "HEAD"])
        #expect(receipt.warnings.count == 1 && receipt.warnings[0].contains("response to the last request was lost"))
        await upload.end()
    }

    /// After a lost response, a missing upload may have been completed: swift-nio-extras, for example, removes complete uploads.
    @Test func reportsUnknownOutcomeOfMissingUpload() async throws {
        let upload = try TestUpload.resource(
            size: 100,
            answers: [
                [.raw(ResourceServer.interim("8")), .read(nil), .reset], [.answer(404)], [.answer(201, ["Location": "/up/2"])],
                [.answer(200, ["Upload-Complete": "?1"])],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        let error = await upload.failure(from: upload.recorder.checkpoints.last)
        #expect(error?.code == .outcomeUnknown && error?.failureClass == .permanent)
        #expect(error?.message.contains("Look for the file there") == true)
        // A retry by the user restarts the upload.
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.methods == ["POST", "HEAD", "POST", "PATCH"])
        await upload.end()
    }

    /// If the server can't have received all content, a missing upload restarts.
    @Test func restartsMissingIncompleteUpload() async throws {
        let upload = try TestUpload.resource(
            size: 32 << 20,
            answers: [
                [.raw(ResourceServer.interim("8")), .raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(40), .reset], [.answer(404)],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(try saved(upload.recorder.checkpoints.last).mayBeComplete == nil)
        #expect(await upload.failure(from: upload.recorder.checkpoints.last)?.failureClass == .resumeLost)
        #expect(upload.methods == ["POST", "HEAD"])
        await upload.end()
    }

    @Test func savesPossibleCompletionBeforeResponse() async throws {
        let size = 8 << 20
        let count = Locked<Int?>(nil)
        let recorder = Locked<Recorder?>(nil)
        let upload = try TestUpload.resource(size: size) { _, _ in
            [
                .raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(size),
                .call {
                    let states = recorder.withLock { $0 }?.checkpoints.map { try? JSONDecoder().decode(Saved.self, from: $0.data) }
                    count.withLock { $0 = states?.count { $0?.mayBeComplete == true } }
                }, .answer(200, ["Upload-Complete": "?1"]),
            ]
        }
        recorder.withLock { $0 = upload.recorder }
        _ = try await upload.run()
        #expect(count.withLock { $0 ?? 0 } >= 1)
        #expect(try saved(upload.recorder.checkpoints.first).mayBeComplete == nil, "not saved before the content")
        await upload.end()
    }

    /// If a process was killed during the only request, the next process does not know whether the server has the file.
    @Test func reportsUnknownOutcomeAfterKill() async throws {
        let upload = try TestUpload.resource(size: 10, answers: [])
        let error = await upload.failure(from: Checkpoint(data: Data(#"{"dialect":"ietf-8","mayBeComplete":true}"#.utf8), confirmed: 0))
        #expect(error?.code == .outcomeUnknown)
        #expect(upload.methods.isEmpty)
        await upload.end()
    }

    /// Without an interim response, the next attempt creates an upload without content, which can resume.
    @Test func createsUploadWithoutContentAfterCutWithoutURL() async throws {
        let server = ResourceServer(version: "8", announces: false, "POST", .content(40))
        let upload = try TestUpload.resource(size: 32 << 20) { request, _ in server.steps(request) }
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.requests.map { "\($0.method) \($0.contentLength)" } == ["POST 33554432", "POST 0", "PATCH 33554432"])
        #expect(upload.featureRequests == 1)
        await upload.end()
    }

    /// A gateway's error after the whole content does not show whether the server has processed the file.
    @Test func reportsUnknownOutcomeBehindGateway() async throws {
        let upload = try TestUpload.resource(size: 10, answers: [[.answer(504)]])
        #expect(await upload.failure()?.code == .outcomeUnknown)
        await upload.end()
    }

    /// The error comes from the upload resource (the URL that receives the content), not from the resource that processes the file.
    @Test func resumesAfterServerError() async throws {
        let upload = try TestUpload.resource(
            size: 10,
            answers: [
                [.raw(ResourceServer.interim("8")), .answer(503)], [.answer(204, ["Upload-Offset": "10", "Upload-Complete": "?0"])],
                [.answer(200, ["Upload-Complete": "?1"])],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.methods == ["POST", "HEAD", "PATCH"])
        let last = try #require(upload.requests.last)
        #expect(last.contentLength == 0 && last.headers["upload-complete"] == "?1" && last.headers["upload-offset"] == "10")
        await upload.end()
    }

    /// The client ignores interim responses with another version. If the request has a version, the client also ignores interim responses
    /// without a version.
    @Test(arguments: ["6", "final"]) func ignoresInterimResponseOfOtherVersion(version: String) async throws {
        let upload = try TestUpload.resource(size: 100, answers: [[.raw(ResourceServer.interim(version)), .read(nil), .reset]])
        #expect(await upload.failure()?.code == .outcomeUnknown)
        #expect(upload.recorder.checkpoints.allSatisfy { (try? saved($0).url) == nil })
        await upload.end()
    }

    /// The requests of the final protocol have no version, so an interim response with a version belongs to another protocol.
    @Test func ignoresInterimResponseOfDraftInFinalProtocol() async throws {
        let upload = try TestUpload.resource(
            size: 10,
            answers: [
                [.raw(ResourceServer.interim("8")), .answer(201, ["Location": "/up/2", "Upload-Complete": "?0"])],
                [.answer(200, ["Upload-Complete": "?1"])],
            ])
        _ = try await upload.run(from: Checkpoint(data: Data(#"{"dialect":"ietf-final"}"#.utf8), confirmed: 0))
        #expect(upload.requests.map { "\($0.method) \($0.path)" } == ["POST /files/", "PATCH /up/2"])
        #expect(upload.requests.allSatisfy { $0.headers["upload-draft-interop-version"] == nil })
        await upload.end()
    }

    @Test func restartsIfServerLostConfirmedBytes() async throws {
        var upload = try TestUpload.resource(
            size: 100,
            answers: [
                [.answer(201, ["Location": "/up/1"])], [.answer(204, ["Upload-Offset": "40"])], [.read(10), .reset],
                [.answer(204, ["Upload-Offset": "50"])], [.answer(204, ["Upload-Offset": "30"])],
            ])
        upload.options.chunkSize = 40
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.recorder.checkpoints.last?.confirmed == 50)
        let error = await upload.failure(from: upload.recorder.checkpoints.last)
        #expect(error?.failureClass == .resumeLost && error?.message.contains("30 of 50 bytes that it confirmed") == true)
        await upload.end()
    }

    /// The offset may be higher than the number of bytes that were sent, because the server may have obtained content in other ways.
    @Test func acceptsHigherOffset() async throws {
        let upload = try TestUpload.resource(
            size: 100,
            answers: [
                [.raw(ResourceServer.interim("8")), .read(10), .reset], [.answer(204, ["Upload-Offset": "80", "Upload-Complete": "?0"])],
                [.answer(200, ["Upload-Complete": "?1"])],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.requests.last?.contentLength == 20)
        await upload.end()
    }

    @Test func acceptsProblemOfCompletedUpload() async throws {
        let upload = try TestUpload.resource(
            size: 10,
            answers: [
                [.raw(ResourceServer.interim("8")), .answer(503)], [.answer(204, ["Upload-Offset": "10"])],
                [
                    .answer(
                        400, ["Upload-Complete": "?1", "Content-Type": "application/problem+json"],
                        body: "{\"type\":\"https://iana.org/assignments/http-problem-types#completed-upload\"}")
                ],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(try await upload.run(from: upload.recorder.checkpoints.last).bytes == 10)
        #expect(upload.methods == ["POST", "HEAD", "PATCH"])
        await upload.end()
    }

    /// An earlier response was lost, and the server's state does not show whether the upload is complete. A later rejection of the empty request that
    /// completes the upload does not change this.
    @Test(arguments: [401, 404, 410]) func rejectionKeepsOutcomeUnknown(status: Int) async throws {
        let upload = try TestUpload.resource(
            size: 10,
            answers: [
                [.raw(ResourceServer.interim("8")), .read(nil), .reset], [.answer(204, ["Upload-Offset": "10"])], [.answer(status)],
                [.answer(404)], [.answer(404)],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        var error = await upload.failure(from: upload.recorder.checkpoints.last)
        if error?.failureClass == .credentials { error = await upload.failure(from: upload.recorder.checkpoints.last) }
        #expect(error?.code == .outcomeUnknown, "\(String(describing: error))")
        #expect(upload.methods.prefix(4) == ["POST", "HEAD", "PATCH", "HEAD"])
        await upload.end()
    }

    /// The completing request of this attempt was rejected, and no earlier request can have completed the upload.
    @Test func restartsMissingUploadAfterRejection() async throws {
        var upload = try TestUpload.resource(
            size: 10, answers: [[.answer(201, ["Location": "/up/1"])], [.answer(404)], [.answer(404)]])
        upload.options.creation = .separate
        #expect(await upload.failure()?.failureClass == .resumeLost)
        #expect(upload.methods == ["POST", "PATCH", "HEAD"])
        await upload.end()
    }

    @Test func endsIfServerNeverCompletesUpload() async throws {
        let upload = try TestUpload.resource(size: 10) { request, _ in
            switch request.method {
            case "POST": [.answer(201, ["Location": "/up/1", "Upload-Complete": "?0"])]
            case "HEAD": [.answer(204, ["Upload-Offset": "10", "Upload-Complete": "?0"])]
            default: [.answer(204, ["Upload-Offset": "10", "Upload-Complete": "?0"])]
            }
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .transient && error?.code == .invalidResponse)
        #expect(upload.methods == ["POST", "HEAD", "PATCH"])
        await upload.end()
    }
}
