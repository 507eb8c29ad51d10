import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP
import TransportTUS

/// Servers that accept connections and never respond. After the stall timeout, the queue sends the file to the account's next endpoint.
@Suite(.timeLimit(.minutes(5))) struct BlackHoleTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    /// The request to which the server does not respond.
    private enum IgnoredRequest: String, CaseIterable, Sendable {
        case options = "OPTIONS"
        case creation = "POST"
        case put = "PUT"
        case form = "FORM"
    }

    /// Checks that the queue sends a file to the second endpoint if the first endpoint does not respond to a request.
    ///
    /// - Parameter size: The size of the file in bytes. An empty file counts as completely sent before the first request.
    private func check(_ ignored: IgnoredRequest, size: Int) async throws {
        let receivedIgnored = AsyncStream.makeStream(of: Void.self)
        let silentServer = try ScriptedServer { request, _ in
            if ignored == .creation, request.method == "OPTIONS" {
                return [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,creation-with-upload"])]
            }
            return [.read(nil), .call { receivedIgnored.continuation.yield() }, .silence]
        }
        let nextServer = try ScriptedServer { request, _ in
            switch request.method {
            case "OPTIONS": [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,creation-with-upload"])]
            case "POST" where request.headers["upload-length"] != nil:
                [.tus(201, ["Location": "/files/1", "Upload-Offset": "\(request.contentLength)"])]
            default: [.answer(201)]
            }
        }
        let endpoint: (ScriptedServer) -> Endpoint = { server in
            switch ignored {
            case .options, .creation: .tus(server.url())
            case .put: .http("http+put://127.0.0.1:\(server.port)/")
            case .form: .http("http+form://127.0.0.1:\(server.port)/")
            }
        }
        let clock = AdvanceableClock()
        let queue = try await interop.openQueue(
            Account("real", endpoints: [endpoint(silentServer), endpoint(nextServer)], fallbackAfter: .zero),
            transports: [TUSTransport(), HTTPTransport()],
            clock: clock.engineClock)
        let (events, sleeps) = (queue.events, clock.sleeps)
        let session = try await queue.enqueue(try .upload([interop.file("small", size: size)], to: "real"))
        try await queue.start()
        for await _ in receivedIgnored.stream { break }
        let failing = Task { await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } } }
        // The queue checks for progress ten times a second. This task advances the clock past the stall timeout, but not past the response
        // timeout.
        let advancing = Task {
            var passed = Duration.zero
            for await wait in sleeps where wait == .milliseconds(100) && passed < .seconds(70) {
                clock.advance(by: .seconds(1))
                passed += .seconds(1)
            }
        }
        let state = try await session.value.state
        #expect(state == .completed)
        #expect(await failing.value?.code == .stalled)
        advancing.cancel()
        let item = try #require(try await queue.items(of: session.id).first)
        #expect(item.remoteURL?.contains(":\(nextServer.port)/") ?? true)
        #expect(silentServer.requests.count == (ignored == .creation ? 2 : 1), "the silent server got one unanswered request")
        await queue.shutdown()
        silentServer.stop()
        nextServer.stop()
    }

    @Test(arguments: [0, 1_000]) func fallsBackIfServerIgnoresOPTIONS(size: Int) async throws {
        try await check(.options, size: size)
    }

    @Test(arguments: [0, 1_000, 1 << 20]) func fallsBackIfServerIgnoresPOST(size: Int) async throws {
        try await check(.creation, size: size)
    }

    @Test(arguments: [0, 1_000, 1 << 20]) func fallsBackIfServerIgnoresPUT(size: Int) async throws {
        try await check(.put, size: size)
    }

    @Test(arguments: [0, 1_000]) func fallsBackIfServerIgnoresForm(size: Int) async throws {
        try await check(.form, size: size)
    }

    // MARK: Resumed uploads

    /// A resumed upload begins with a HEAD. Without confirmed bytes at the silent server, the file moves to the next endpoint after one
    /// stall. With confirmed bytes, it moves after three stalls.
    @Test(arguments: [(0, 1), (500, 3)]) func fallsBackIfServerIgnoresHEAD(confirmed: Int, attempts: Int) async throws {
        let (unanswered, unansweredContinuation) = AsyncStream.makeStream(of: String.self)
        let silentServer = try ScriptedServer { request, _ in
            switch request.method {
            case "OPTIONS": [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation"])]
            case "POST": [.tus(201, ["Location": "/files/1"])]
            case "PATCH" where request.headers["upload-offset"] == "0" && confirmed > 0: [.tus(204, ["Upload-Offset": "\(confirmed)"])]
            default: [.read(nil), .call { unansweredContinuation.yield(request.method) }, .silence]
            }
        }
        let nextServer = try ScriptedServer { request, _ in
            switch request.method {
            case "OPTIONS": [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,creation-with-upload"])]
            default: [.tus(201, ["Location": "/files/1", "Upload-Offset": "\(request.contentLength)"])]
            }
        }
        let clock = AdvanceableClock()
        let account = Account(
            "real", endpoints: [.tus(silentServer.url(), options: TUSOptions(chunkSize: 500)), .tus(nextServer.url())], fallbackAfter: .zero
        )
        var queue = try await interop.openQueue(account, clock: clock.engineClock)
        let id = try await queue.enqueue(try .upload([interop.file("small", size: 1_000)], to: "real")).id
        try await queue.start()
        // The first queue shuts down during a PATCH.
        for await method in unanswered where method == "PATCH" { break }
        await queue.shutdown()

        queue = try await interop.openQueue(account, clock: clock.engineClock)
        let events = queue.events
        let failing = Task {
            var errors: [TransferError] = []
            for await event in events {
                if case .attemptFailed(_, let error, _) = event.kind { errors.append(error) }
                if case .completed = event.kind { break }
                if case .failed = event.kind { break }
            }
            return errors
        }
        try await queue.start()
        // After each HEAD, this task advances the clock past the stall timeout, but not past the response timeout.
        let advancing = Task {
            for await method in unanswered where method == "HEAD" {
                var left = 70
                for await wait in clock.sleeps where wait == .milliseconds(100) {
                    clock.advance(by: .seconds(1))
                    left -= 1
                    if left == 0 { break }
                }
            }
        }
        #expect(try await queue.session(id).value.state == .completed)
        advancing.cancel()
        let errors = await failing.value
        #expect(errors.count == attempts && errors.allSatisfy { $0.code == .stalled && $0.failureClass == .unreachable }, "\(errors)")
        #expect(errors.allSatisfy { $0.message.contains("(the stall timeout)") }, "\(errors)")
        #expect(silentServer.requests.count { $0.method == "HEAD" } == attempts, "\(silentServer.requests.map(\.method))")
        let item = try #require(try await queue.items(of: id).first)
        #expect(item.remoteURL?.contains(":\(nextServer.port)/") == true)
        await queue.shutdown()
        silentServer.stop()
        nextServer.stop()
    }
}
