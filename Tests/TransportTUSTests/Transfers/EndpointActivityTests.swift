import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Reports of activity and of waiting, without which the queue would consider a slow attempt stalled. Also tests the delay that a failure includes
/// (`Retry-After`).
@Suite struct EndpointActivityTests {
    /// A buffering network path loses the whole content of an interrupted request. The server has no bytes, and the content is sent again.
    @Test func repeatedContentIsActivity() async throws {
        let size = 32 << 20
        let upload = try TestUpload(
            size: size, offers: "creation",
            answers: [
                [.created], [.read(1_000_000), .reset], [.offset(0, of: size)], [.read(nil), .accepted(size)],
                [.answer(404)],
            ])
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH", "GET"])
        #expect(upload.recorder.activity > 0)
        let sent = upload.recorder.progress.map(\.sent)
        #expect(sent == sent.sorted(), "Repeated content is not progress.")
        await upload.end()
    }

    /// The client reports activity before the network accepts any byte of the repeated content, because this may never happen.
    @Test func reportsActivityBeforeRepeatedContent() async throws {
        let (repetitions, repetition) = AsyncStream.makeStream(of: Void.self)
        let upload = try TestUpload(
            size: 600_000, offers: "creation",
            answers: [[.created], [.answer(413)], [.offset(0)], [.call { repetition.finish() }, .silence]])
        let attempt = Task { try await upload.run() }
        for await _ in repetitions {}
        #expect(upload.recorder.activity > 0)
        attempt.cancel()
        _ = await attempt.result
        await upload.end()
    }

    @Test func doesNotReportActivityForNewContent() async throws {
        let upload = try TestUpload(size: 1_500_000, offers: "creation", answers: [[.created], [.read(nil), .accepted(1_500_000)]])
        _ = try await upload.run()
        #expect(upload.recorder.activity == 0)
        await upload.end()
    }

    /// When the transport has sent the content of a large request, or of the last request of a large upload, it reports that it waits for
    /// the server's response. The queue's longer response timeout then applies.
    @Test func reportsWaitAfterLargeRequest() async throws {
        let (size, chunk) = (3_000_000, 1_100_000)
        var upload = try TestUpload(
            size: size, offers: "creation",
            answers: [
                [.created], [.read(nil), .accepted(chunk)], [.read(nil), .accepted(2 * chunk)], [.read(nil), .accepted(size)],
            ])
        upload.options.chunkSize = Int64(chunk)
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "PATCH", "PATCH"])
        #expect(upload.recorder.waiting >= 3)
        await upload.end()
    }

    /// The queue's stall timeout applies to the response to a small request, because a server should respond to such a request quickly.
    @Test func doesNotReportWaitAfterSmallRequest() async throws {
        var upload = try TestUpload(
            size: 250, offers: "creation",
            answers: [[.created], [.read(nil), .accepted(100)], [.read(nil), .accepted(200)], [.read(nil), .accepted(250)]])
        upload.options.chunkSize = 100
        _ = try await upload.run()
        #expect(upload.recorder.waiting == 0)
        await upload.end()
    }

    /// The `Retry-After` in the response to HEAD applies, although the PATCH failed first.
    @Test func failureIncludesRetryAfterOfLaterResponse() async throws {
        let upload = try TestUpload(
            size: 1000, offers: "creation", answers: [[.created], [.read(10), .reset], [.tus(503, ["Retry-After": "120"])]])
        let failure = await upload.failure()
        #expect(failure?.failureClass == .transient && failure?.code == .connectionLost)
        #expect(failure?.retryAfter == .seconds(120))
        await upload.end()
    }
}
