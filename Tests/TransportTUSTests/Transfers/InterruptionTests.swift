import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// When a `PATCH` fails, an attempt reads the offset and stores it. The attempt sends from the same offset again only after it has read the offset.
@Suite struct InterruptionTests {
    @Test func readsOffsetAfterInterruption() async throws {
        let upload = try TestUpload(size: 300_000, answers: [[.created], [.read(1000), .reset], [.offset(1000, of: 300_000)]])
        let error = await upload.failure()
        #expect(error?.failureClass == .transient)
        #expect(error?.code == .connectionLost)
        #expect(upload.methods == ["POST", "PATCH", "HEAD"])
        #expect(upload.recorder.checkpoints.last?.confirmed == 1000)
        #expect(upload.recorder.progress.last?.confirmed == 1000)
        await upload.end()
    }

    @Test func nextAttemptResumesAfterInterruption() async throws {
        let upload = try TestUpload(
            size: 300_000,
            answers: [[.created], [.read(1000), .reset], [.offset(1000)], [.offset(1000)], [.accepted(300_000)]])
        _ = await upload.failure()
        let receipt = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(receipt.bytes == 300_000)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "HEAD", "PATCH"])
        #expect(upload.requests.last?.headers["upload-offset"] == "1000")
        await upload.end()
    }

    @Test(arguments: [[ServerStep.close], [.raw("HTTP/1.1 2"), .close], [.raw("HTTP/1.1 204 X\r\nUpload-Off"), .close]])
    func readsOffsetAfterTruncatedResponse(steps: [ServerStep]) async throws {
        let upload = try TestUpload(size: 10, answers: [[.created], [.read(nil)] + steps, [.offset(3)]])
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.methods == ["POST", "PATCH", "HEAD"])
        #expect(upload.recorder.checkpoints.last?.confirmed == 3)
        await upload.end()
    }

    @Test func toleratesFailedHEAD() async throws {
        let upload = try TestUpload(size: 10, answers: [[.created], [.read(1), .reset], [.reset]])
        let error = await upload.failure()
        #expect(error?.code == .connectionLost)
        #expect(upload.methods.prefix(3) == ["POST", "PATCH", "HEAD"])
        #expect(upload.recorder.checkpoints.last?.confirmed == 0)
        await upload.end()
    }

    @Test func restartsUploadThatIsGoneAfterInterruption() async throws {
        let upload = try TestUpload(size: 10, answers: [[.created], [.read(1), .reset], [.tus(404)]])
        #expect(await upload.failure()?.failureClass == .resumeLost)
        await upload.end()
    }

    @Test func resumesAtOffsetAfterConflict() async throws {
        let upload = try TestUpload(
            size: 10, answers: [[.offset(0)], [.tus(409)], [.offset(6)], [.accepted(10)]])
        _ = try await upload.run(from: upload.checkpoint())
        #expect(upload.methods == ["HEAD", "PATCH", "HEAD", "PATCH"])
        #expect(upload.requests.last?.headers["upload-offset"] == "6")
        await upload.end()
    }

    @Test func doesNotRepeatConflictAtSameOffset() async throws {
        let upload = try TestUpload(size: 10, answers: [[.created], [.tus(409)], [.offset(0)]])
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.methods == ["POST", "PATCH", "HEAD"])
        await upload.end()
    }

    @Test func limitsNumberOfConflicts() async throws {
        let upload = try TestUpload(size: 10) { request, number in
            request.method == "HEAD" ? [.offset(number % 4 == 0 ? 1 : 2)] : [.tus(409)]
        }
        #expect(await upload.failure(from: try upload.checkpoint())?.failureClass == .transient)
        #expect(upload.methods.filter { $0 == "PATCH" }.count == 4)
        await upload.end()
    }

    @Test func secondRejectionAtSameOffsetIsFinal() async throws {
        let upload = try TestUpload(size: 10) { request, number in
            request.method == "HEAD" ? [.offset(0)] : request.method == "POST" ? [.created] : [.tus(400, body: "no such thing")]
        }
        #expect(await upload.failure()?.failureClass == .transient)
        let error = await upload.failure(from: upload.recorder.checkpoints.last)
        #expect(error?.failureClass == .permanent)
        #expect(error?.cause?.contains("no such thing") == true)
        await upload.end()
    }

    @Test func rejectionsAtDifferentOffsetsAreNotFinal() async throws {
        let upload = try TestUpload(
            size: 10,
            answers: [
                [.created], [.tus(400)], [.offset(0)], [.offset(0)], [.tus(400)], [.offset(4)], [.offset(4)], [.tus(400)], [.offset(4)],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(await upload.failure(from: upload.recorder.checkpoints.last)?.failureClass == .transient)
        #expect(await upload.failure(from: upload.recorder.checkpoints.last)?.failureClass == .permanent, "rejected twice at this offset")
        #expect(upload.methods == ["POST", "PATCH", "HEAD"] + ["HEAD", "PATCH", "HEAD"] + ["HEAD", "PATCH", "HEAD"])
        await upload.end()
    }

    @Test func eachPATCHStartsAtReportedOffset() async throws {
        let upload = try TestUpload(size: 1000) { request, number in
            switch request.method {
            case "POST": [.created]
            case "HEAD": [.offset(number * 10)]
            default: [.accepted(number * 10)]
            }
        }
        _ = await upload.failure()
        let requests = upload.requests
        for (index, request) in requests.enumerated() where request.method == "PATCH" && index > 1 {
            #expect(request.headers["upload-offset"] == "\((index - 1) * 10)")
        }
        await upload.end()
    }

    @Test func sendsNothingAfterCancellation() async throws {
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let upload = try TestUpload(size: 10) { request, _ in
            request.method == "POST" ? [.created] : [.read(nil), .call { arrival.finish() }, .silence]
        }
        let task = Task { try await upload.run() }
        for await _ in arrived {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }
}
