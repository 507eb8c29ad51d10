import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// A server that asks the client to back off receives no more requests in this attempt or removal, unless the delay is zero.
@Suite struct BusyServerTests {
    private static let offers = "creation,concatenation"

    private static func busy(_ status: Int) -> ServerStep { .tus(status, ["Retry-After": "60"]) }

    @Test(arguments: [429, 503]) func sendsNothingAfterBusyResponseToContent(status: Int) async throws {
        let size = 8_000_000
        let upload = try TestUpload(
            size: size,
            answers: [[.created], [.read(nil), Self.busy(status)], [.offset(0)], [.accepted(size)], [.offset(size)]])
        let error = await upload.failure()
        #expect(error?.failureClass == .transient)
        #expect(error?.retryAfter == .seconds(60))
        #expect(upload.methods == ["POST", "PATCH"])
        // The server received the whole request, so the client does not reduce the size of later requests. A new process does not reduce the size
        // either.
        let transport = TUSTransport()
        _ = try await upload.run(from: upload.recorder.checkpoints.last, by: transport)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH"])
        #expect(upload.requests.last?.contentLength == size)
        await transport.shutdown()
        await upload.end()
    }

    @Test func readsOffsetImmediatelyIfDelayIsZero() async throws {
        let upload = try TestUpload(size: 10, answers: [[.created], [.tus(503, ["Retry-After": "0"])], [.offset(4)]])
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.methods == ["POST", "PATCH", "HEAD"])
        await upload.end()
    }

    /// The other segments stop: they send no more requests, and no more segments are created.
    @Test(arguments: ["POST", "PATCH"]) func busyResponseStopsOtherSegments(method: String) async throws {
        let count = Locked(0)
        let upload = try TestUpload(size: 900, offers: Self.offers) { request, number in
            guard request.method == method else { return [.tus(201, ["Location": "/files/\(number)"])] }
            let isLast = count.withLock { count in
                count += 1
                return count == 3
            }
            return [isLast ? Self.busy(429) : .silence]
        }
        var segmented = upload
        segmented.endpoint.settings["parallelThreshold"] = "1"
        segmented.options.segmentsPerFile = 3
        let error = await segmented.failure()
        #expect(error?.retryAfter == .seconds(60))
        #expect(upload.methods.sorted() == (method == "POST" ? [] : ["PATCH", "PATCH", "PATCH"]) + ["POST", "POST", "POST"])
        await upload.end()
    }

    /// The server is too busy to remove the first of two unused uploads, so the client sends no more requests.
    @Test func stopsRemovalsIfServerIsBusy() async throws {
        let upload = try TestUpload(size: 10) { request, _ in [request.method == "DELETE" ? Self.busy(503) : .silence] }
        let (first, second) = (upload.server.url("/files/1"), upload.server.url("/files/2"))
        let checkpoint = Checkpoint(
            data: Data("{\"partSize\": 5, \"parts\": [{\"url\": \"\(first)\"}, {\"url\": \"\(second)\"}]}".utf8), confirmed: 0)
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.retryAfter == .seconds(60))
        #expect(upload.methods == ["DELETE"])
        await upload.end()
    }

    /// One segment is inaccessible, and the server is too busy to remove it. The client therefore does not create a new segment
    /// immediately.
    @Test func doesNotCreateReplacementWhileServerIsBusy() async throws {
        let upload = try TestUpload(size: 10, offers: Self.offers) { request, _ in
            switch request.method {
            case "HEAD": [.tus(403)]
            case "DELETE": [Self.busy(429)]
            default: [.created]
            }
        }
        let segment = "{\"url\": \"\(upload.server.url("/files/1"))\"}"
        let checkpoint = Checkpoint(data: Data("{\"partSize\": 10, \"parts\": [\(segment)]}".utf8), confirmed: 0)
        let error = await upload.failure(from: checkpoint)
        #expect(error?.retryAfter == .seconds(60))
        #expect(upload.methods == ["HEAD", "DELETE"])
        await upload.end()
    }
}
