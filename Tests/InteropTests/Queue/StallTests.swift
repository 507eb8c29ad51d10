import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP
import TransportTUS

/// Attempts that stall. After a server stops responding, the queue's timeouts end the attempt, and a later attempt completes the transfer.
@Suite struct StallTests {
    @Test func readsOffsetAfterUnansweredPATCH() async throws {
        let interop = try InteropFixture()
        let size = 1 << 20
        let isFirstPATCH = Locked(true)
        let server = try ScriptedServer { request, _ in
            switch request.method {
            case "OPTIONS": return [.answer(404)]
            case "POST": return [.tus(201, ["Location": "/files/1"])]
            case "HEAD": return [.tus(200, ["Upload-Offset": "0", "Upload-Length": "\(size)"])]
            default:
                let isFirst = isFirstPATCH.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                return isFirst ? [.silence] : [.tus(204, ["Upload-Offset": "\(size)"])]
            }
        }
        defer { server.stop() }
        let queue = try await interop.openQueue(server.url())
        let events = queue.events
        // On a busy machine, other requests may also exceed the timeouts. Those requests are retried in the same way.
        let options = SessionOptions(
            retry: RetryPolicy(maximumAttempts: 1_000), stallTimeout: .milliseconds(500), responseTimeout: .milliseconds(500))
        let session = try await queue.enqueue(try .upload([interop.file("large", size: size)], to: "real", options: options))
        try await queue.start()
        let failure = await events.firstFailure()
        #expect(failure?.code == .stalled)
        #expect(try await session.value.state == .completed)
        let methods = server.requests.map(\.method)
        #expect(methods.count { $0 == "PATCH" } >= 2, "the unanswered PATCH and at least one other")
        for (earlier, later) in zip(methods, methods.dropFirst()) where later == "PATCH" {
            #expect(earlier != "PATCH", "a response precedes each PATCH: \(methods)")
        }
        await queue.shutdown()
    }

    /// The server receives the content of a PATCH, but never responds to it. After the last byte of a request with at most 1 MiB, the stall
    /// timeout applies. After the last byte of a larger request, the longer response timeout applies.
    @Test(.timeLimit(.minutes(5)), arguments: [(1 << 20, 60), (1 << 20 + 1, 300)])
    func givesUpUnansweredPATCH(size: Int, seconds: Int) async throws {
        let interop = try InteropFixture()
        let (receivedPATCHes, continuation) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { request, _ in
            switch request.method {
            case "OPTIONS": [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation"])]
            case "POST": [.tus(201, ["Location": "/files/1"])]
            case "HEAD": [.tus(200, ["Upload-Offset": "\(size)", "Upload-Length": "\(size)"])]
            default: [.read(nil), .call { continuation.yield() }, .silence]
            }
        }
        defer { server.stop() }
        let clock = AdvanceableClock()
        let failedAt = Locked<Duration?>(nil)
        let transport = ObservedTransport(
            base: TUSTransport(), didFail: { [clock, failedAt] _ in failedAt.withLock { $0 = $0 ?? clock.now } })
        let queue = try await interop.openQueue(
            Account("real", endpoints: [.tus(server.url())]), transports: [transport], clock: clock.engineClock)
        let events = queue.events
        let options = SessionOptions(stallTimeout: .seconds(60), responseTimeout: .seconds(300))
        let session = try await queue.enqueue(try .upload([interop.file("file", size: size)], to: "real", options: options))
        let start = clock.now
        try await queue.start()
        for await _ in receivedPATCHes { break }
        // The server has received the whole request. This task advances the clock past the timeout that applies.
        let advancing = Task {
            var left = seconds + 10
            for await wait in clock.sleeps where wait == .milliseconds(100) {
                clock.advance(by: .seconds(1))
                left -= 1
                if left == 0 { break }
            }
        }
        let failure = await events.firstFailure()
        #expect(failure?.code == .stalled)
        let limit = seconds == 60 ? "(the stall timeout)" : "(the response timeout)"
        #expect(failure?.message.contains(limit) == true, "\(failure?.message ?? "")")
        #expect(try await session.value.state == .completed)
        advancing.cancel()
        let end = try #require(failedAt.withLock { $0 })
        // The clock also follows the machine's time, so the upper bound is not exact.
        #expect(end - start >= .seconds(seconds) && end - start < .seconds(seconds + 200), "\(end - start)")
        #expect(server.requests.map(\.method).prefix(4) == ["OPTIONS", "POST", "PATCH", "HEAD"])
        #expect(server.requests.count { $0.method == "PATCH" } == 1)
        await queue.shutdown()
    }

    /// The request that sends a form begins with the form's length, so the request starts only after the app has produced all data. The
    /// attempt does not stall while it waits for the app.
    @Test func toleratesSlowProducer() async throws {
        let interop = try InteropFixture()
        let server = try ScriptedServer { _, _ in [.answer(201)] }
        defer { server.stop() }
        let endpoint = Endpoint.http("http+form://127.0.0.1:\(server.port)/files/")
        let clock = AdvanceableClock()
        let queue = try await interop.openQueue(
            Account("real", endpoints: [endpoint]), transports: [HTTPTransport()], clock: clock.engineClock)
        let (blocks, continuation) = AsyncStream.makeStream(of: Data.self)
        continuation.yield(Data("some of it, ".utf8))
        let options = SessionOptions(
            retry: RetryPolicy(maximumAttempts: 2), stallTimeout: .seconds(30), responseTimeout: .seconds(60))
        let session = try await queue.enqueue(
            .upload(items: [.stream(blocks, as: try RemotePath("stream"))], to: "real", options: options))
        let sleeps = clock.sleeps
        let (events, failures) = (queue.events, queue.events)
        try await queue.start()
        for await event in events where event.session == session.id { if case .didActivate = event.kind { break } }
        // The queue checks for progress 1,000 times. This takes 100 s of the queue's time, which is longer than both timeouts.
        let advancing = Task {
            var checks = 0
            for await wait in sleeps where wait == .milliseconds(100) {
                clock.advance(by: wait)
                checks += 1
                if checks == 1_000 { break }
            }
            return checks
        }
        let failing = Task { if await failures.firstFailure() != nil { advancing.cancel() } }
        #expect(await advancing.value == 1_000, "no attempt stalls")
        continuation.yield(Data("and the rest".utf8))
        continuation.finish()
        #expect(try await session.value.state == .completed)
        #expect(String(decoding: server.requests[0].body, as: UTF8.self).contains("some of it, and the rest"))
        await queue.shutdown()
        await failing.value
    }

    /// The server stops responding before, during or after a body. A later attempt completes the transfer.
    @Test(arguments: ["put", "form", "get"]) func retriesAfterWebServerStopsResponding(mode: String) async throws {
        let interop = try InteropFixture()
        let server = try ScriptedServer { request, number in
            switch (mode, number) {
            case (_, 0): [.silence]
            case ("get", 1): [.raw("HTTP/1.1 200 Scripted\r\nContent-Length: 10\r\n\r\n01234"), .silence]
            case (_, 1): [.raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(100_000), .silence]
            case (_, 2) where mode != "get": [.raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(nil), .silence]
            case ("get", _): [.answer(200, body: "0123456789")]
            default: [.raw("HTTP/1.1 100 Continue\r\n\r\n"), .answer(201)]
            }
        }
        defer { server.stop() }
        let endpoint = Endpoint.http("http+\(mode)://127.0.0.1:\(server.port)/files/")
        let queue = try await interop.openQueue(Account("real", endpoints: [endpoint]), transports: [HTTPTransport()])
        let events = queue.events
        let options = SessionOptions(
            retry: RetryPolicy(maximumAttempts: 1_000), stallTimeout: .milliseconds(500), responseTimeout: .milliseconds(500))
        let folder = FilePath(interop.folder.path)
        let session = try await queue.enqueue(
            mode == "get"
                ? .download(items: [.remote(try RemotePath("received"))], from: "real", to: folder, options: options)
                : try .upload([interop.file("large", size: 20 << 20)], to: "real", options: options))
        try await queue.start()
        #expect(await events.firstFailure()?.code == .stalled)
        #expect(try await session.value.state == .completed)
        #expect(server.requests.count >= (mode == "get" ? 3 : 4))
        await queue.shutdown()
    }
}

extension QueueEvents {
    fileprivate func firstFailure() async -> TransferError? {
        for await event in self {
            if case .attemptFailed(_, let error, _) = event.kind { return error }
        }
        return nil
    }
}
