import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// Early, late and missing responses, and broken connections.
@Suite struct InterruptionTests {
    private static func head(_ status: Int, _ headers: String = "Content-Length: 0\r\n") -> ServerStep {
        .raw("HTTP/1.1 \(status) Scripted\r\n\(headers)\r\n")
    }

    @Test(arguments: ["put", "form"]) func restartsUploadAfterBrokenConnection(mode: String) async throws {
        let transfer = try TestTransfer(
            mode, size: 3_000_000, answers: [[.read(100_000), .reset, .close], [.read(nil), .close], [.answer(200)]])
        for _ in 0..<2 {
            let failure = await transfer.failure()
            #expect(failure?.failureClass == .transient)
            #expect(failure?.code == .serverUnavailable)
        }
        #expect(transfer.recorder.checkpoints.isEmpty)
        #expect(transfer.recorder.progress.allSatisfy { $0.confirmed == 0 })
        #expect(try await transfer.run().bytes == 3_000_000)
        let bodies = transfer.server.requests.map(\.body)
        #expect(bodies[2].count >= 3_000_000)
        #expect(bodies[2].firstRange(of: TemporaryFile.content(size: 1000)) != nil)
        await transfer.end()
    }

    /// A forwarder accepts each connection and closes it, because its server is stopped. This is an outage of the endpoint; see
    /// `RecoveryDecision.isOutage`.
    @Test(arguments: ["put", "form", "get"], [0, 5]) func connectionClosedWithoutResponseIsOutage(mode: String, limit: Int) async throws {
        let forwarder = try ScriptedServer(headLimit: { _ in limit }) { _, _ in [.silence] }
        defer { forwarder.stop() }
        var transfer = try TestTransfer(mode, size: mode == "get" ? nil : 10, answers: [])
        transfer.endpoint.address = "http+\(mode)://127.0.0.1:\(forwarder.port)/x"
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .transient && failure?.code == .serverUnavailable, "\(String(describing: failure))")
        #expect(failure?.message.contains("change http to https") == true)
        transfer.endpoint.address = "https+\(mode)://127.0.0.1:\(forwarder.port)/x"
        let cut = await transfer.failure()
        #expect(cut?.failureClass == .unreachable && cut?.code == .connectionLost, "\(String(describing: cut))")
        await transfer.end()
    }

    /// Servers based on SwiftNIO, Node or HAProxy send status 400 if the connection is closed in one direction during a request.
    @Test(arguments: ["put", "form", "get"], [0, 3_000_000])
    func repeatsRequestThatMayHaveBeenTruncated(mode: String, size: Int) async throws {
        let isDownload = mode == "get"
        let transfer = try TestTransfer(mode, size: isDownload ? nil : size) { request, number in
            if number == 0 { return [.answer(400, ["Connection": "keep-alive"])] }
            let interim = request.headers["expect"] == nil ? [] : [Self.head(100, "")]
            return interim + [.answer(200, body: isDownload ? "content" : "")]
        }
        _ = try await transfer.run()
        let requests = transfer.server.requests
        #expect(requests.count == 2 && requests.first?.connection != requests.last?.connection)
        if isDownload { #expect(transfer.content == "content") }
        if mode == "put" { #expect(requests.last?.body == TemporaryFile.content(size: size)) }
        #expect(transfer.recorder.progress.allSatisfy { $0.sent <= size || isDownload })
        await transfer.end()
    }

    @Test func sendsExpectBeforeLargeBody() async throws {
        let transfer = try TestTransfer(
            "put", size: 3_000_000,
            answers: [
                [Self.head(413, "Content-Length: 0\r\nConnection: close\r\n"), .read(nil)], [Self.head(100, ""), .answer(201)],
            ])
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .permanent)
        #expect(failure?.code == .tooLarge)
        #expect(try await transfer.run().bytes == 3_000_000)
        #expect(transfer.server.requests.map { $0.headers["expect"] } == ["100-continue", "100-continue"])
        #expect(transfer.server.requests.last?.body == TemporaryFile.content(size: 3_000_000))
        await transfer.end()
    }

    @Test func omitsExpectAfterStatus417() async throws {
        let transfer = try TestTransfer("put", size: 300_000, answers: [[Self.head(417)], [.answer(200)]])
        #expect(await transfer.failure()?.failureClass == .transient)
        #expect(try await transfer.run().bytes == 300_000)
        #expect(transfer.server.requests.map { $0.headers["expect"] } == ["100-continue", nil])
        await transfer.end()
    }

    /// The first server still receives `Expect`.
    @Test func omitsExpectForRedirectTarget() async throws {
        let target = try ScriptedServer(answers: [[Self.head(417)], [.answer(200)]])
        defer { target.stop() }
        var transfer = try TestTransfer("put", size: 300_000) { _, _ in [.answer(307, ["Location": target.url("/x")])] }
        transfer.endpoint.settings = ["origins": "http://127.0.0.1:\(target.port)"]
        #expect(await transfer.failure()?.failureClass == .transient)
        #expect(try await transfer.run().bytes == 300_000)
        #expect(target.requests.map { $0.headers["expect"] } == ["100-continue", nil])
        #expect(transfer.server.requests.map { $0.headers["expect"] } == ["100-continue", "100-continue"])
        await transfer.end()
    }

    /// A connection that closes while it is idle does not mean that the server rejects `Expect`.
    @Test func brokenConnectionDoesNotDisableExpect() async throws {
        let transfer = try TestTransfer(
            "put", size: 300_000,
            answers: [[Self.head(100, ""), .answer(201)], [.close], [.close], [Self.head(100, ""), .answer(201)]])
        _ = try await transfer.run()
        #expect(await transfer.failure()?.failureClass == .transient)
        _ = try await transfer.run()
        #expect(transfer.server.requests.map { $0.headers["expect"] } == Array(repeating: "100-continue", count: 4))
        await transfer.end()
    }

    /// A server may close an idle connection at the moment at which a request reuses it. The transport sends a `PUT` once more, on a new
    /// connection. The transport does not repeat a form, because the server may have handled the first request.
    @Test(arguments: [0, 1, 100_000], [ServerStep.close, .reset])
    func repeatsPutAfterIdleConnectionCloses(size: Int, end: ServerStep) async throws {
        for mode in ["put", "form"] {
            let transfer = try TestTransfer(mode, size: size, answers: [[.answer(201)], [end], [.answer(201)]])
            _ = try await transfer.run()
            if mode == "put" {
                #expect(try await transfer.run().bytes == Int64(size))
                let requests = transfer.server.requests
                #expect(requests.count == 3 && requests[1].connection == 1 && requests[2].connection > 1)
                #expect(requests.last?.body == TemporaryFile.content(size: size))
            } else {
                let failure = await transfer.failure()
                #expect(failure?.failureClass == .transient && failure?.message.contains("unknown whether") == true, "\(failure as Any)")
                #expect(transfer.server.requests.count == 2)
            }
            await transfer.end()
        }
    }

    @Test(arguments: ["put", "form"]) func readsErrorResponseDuringBody(mode: String) async throws {
        let response = #"{"error":"reels of 10 MB at most"}"#
        let head = "Content-Type: application/json\r\nContent-Length: \(response.utf8.count)\r\nConnection: close\r\n"
        let transfer = try TestTransfer(
            mode, size: 20_000_000,
            answers: [[Self.head(100, ""), .read(1_000_000), .raw("HTTP/1.1 413 Scripted\r\n\(head)\r\n\(response)"), .silence]])
        let failure = await transfer.failure()
        #expect(failure?.code == .tooLarge)
        #expect(failure?.cause == "\(mode == "put" ? "PUT" : "POST") returned 413: \(response)")
        #expect(transfer.recorder.progress.allSatisfy { $0.confirmed == 0 })
        await transfer.end()
    }

    @Test func appliesTransferTimeout() async throws {
        let arrival = AsyncStream.makeStream(of: Void.self)
        let waited = Locked<[Duration]>([])
        var transfer = try TestTransfer(
            "put", size: 1,
            wait: { time in
                waited.withLock { $0.append(time) }
                for await _ in arrival.stream { return }
            }, answers: [[.call { arrival.continuation.yield() }, .silence]])
        transfer.endpoint.settings = ["transferTimeout": "1.5"]
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .transient)
        #expect(failure?.code == .timedOut)
        #expect(failure?.message.contains("transferTimeout") == true)
        #expect(waited.withLock { $0 } == [.milliseconds(1500)])
        await transfer.end()
    }

    @Test func completesBeforeTransferTimeout() async throws {
        var transfer = try TestTransfer("put", size: 1, answers: [[.answer(200)]])
        transfer.endpoint.settings = ["transferTimeout": "3600"]
        #expect(try await transfer.run().bytes == 1)
        await transfer.end()
    }

    @Test func resumesDownloadAfterTransferTimeout() async throws {
        let head = "Content-Length: 20\r\nETag: \"1\"\r\n"
        let recorder = Recorder()
        var transfer = try TestTransfer(
            "get", recorder: recorder,
            wait: { _ in
                for await count in recorder.sentBytes.stream where count == 10 { return }
            },
            answers: [
                [.raw("HTTP/1.1 200 OK\r\n\(head)\r\n0123456789"), .silence],
                [.answer(206, ["ETag": "\"1\"", "Content-Range": "bytes 10-19/20"], body: "abcdefghij")],
            ])
        transfer.endpoint.settings = ["transferTimeout": "1"]
        #expect(await transfer.failure()?.code == .timedOut)
        let checkpoint = try #require(transfer.recorder.checkpoints.last)
        #expect(checkpoint.confirmed == 10)
        transfer.endpoint.settings = [:]
        #expect(try await transfer.run(from: checkpoint).bytes == 20)
        #expect(transfer.content == "0123456789abcdefghij")
        #expect(transfer.server.requests.last?.headers["range"] == "bytes=10-")
        #expect(transfer.server.requests.last?.headers["if-range"] == "\"1\"")
        await transfer.end()
    }
}
