import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// What keeps an attempt that is slow, but does not hang, from being ended.
@Suite struct EndpointActivityTests {
    /// A path that buffers loses all of a request that breaks off: the server has none of it, and it is sent once more.
    @Test func whatIsSentOnceMoreMoves() async throws {
        let size = 32 << 20
        let upload = try TestUpload(
            size: size, offers: "creation",
            answers: [
                [.created], [.read(1_000_000), .reset], [.offset(0, of: size)], [.read(nil), .accepted(size)],
            ])
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH"])
        #expect(upload.recorder.activity > 0)
        let sent = upload.recorder.progress.map(\.sent)
        #expect(sent == sent.sorted(), "It counts for nothing all the same.")
        await upload.end()
    }

    /// Before the network takes any of it, which it may never do.
    @Test func whatIsToBeSentOnceMoreIsTold() async throws {
        let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
        let upload = try TestUpload(
            size: 600_000, offers: "creation",
            answers: [[.created], [.answer(413)], [.offset(0)], [.call { beginning.finish() }, .silence]])
        let attempt = Task { try await upload.run() }
        for await _ in begun {}
        #expect(upload.recorder.activity > 0)
        attempt.cancel()
        _ = await attempt.result
        await upload.end()
    }

    @Test func whatIsSentOnceOnlySaysItByItself() async throws {
        let upload = try TestUpload(size: 1_500_000, offers: "creation", answers: [[.created], [.read(nil), .accepted(1_500_000)]])
        _ = try await upload.run()
        #expect(upload.recorder.activity == 0)
        await upload.end()
    }

    /// The answer to each large request, and to the last one of a large upload, may take longer than its content.
    @Test func theAnswerToEachLargeRequestIsAwaited() async throws {
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

    /// Small requests are answered at once, or their server is gone.
    @Test func theAnswerToASmallRequestIsNotWaitedForLonger() async throws {
        var upload = try TestUpload(
            size: 250, offers: "creation",
            answers: [[.created], [.read(nil), .accepted(100)], [.read(nil), .accepted(200)], [.read(nil), .accepted(250)]])
        upload.options.chunkSize = 100
        _ = try await upload.run()
        #expect(upload.recorder.waiting == 0)
        await upload.end()
    }

    /// A server that can't do it says so, also where another request failed first.
    @Test func theServersWishToBeLeftAloneIsToldWithTheFailure() async throws {
        let upload = try TestUpload(
            size: 1000, offers: "creation", answers: [[.created], [.read(10), .reset], [.tus(503, ["Retry-After": "120"])]])
        let failure = await upload.failure()
        #expect(failure?.failureClass == .transient && failure?.code == .connectionLost)
        #expect(failure?.retryAfter == .seconds(120))
        await upload.end()
    }
}
