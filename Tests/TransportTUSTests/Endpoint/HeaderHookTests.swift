import CurlEngine
import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct HeaderHookTests {
    /// The script of a server that accepts the token with the given number and all later tokens.
    private static func script(from number: Int, status: Int = 401) -> ScriptedServer.Script {
        { request, _ in
            let token = request.headers["authorization"]?.split(separator: "-").last.flatMap { Int($0) } ?? -1
            guard token >= number else { return [.tus(status)] }
            return switch request.method {
            case "POST": [.created]
            case "HEAD": [.offset(0)]
            default: [.accepted(10)]
            }
        }
    }

    @Test func hookRunsBeforeEachRequest() async throws {
        let tokens = Tokens()
        var upload = try TestUpload(size: 10, headers: tokens.hook, Self.script(from: 0))
        upload.number = 3
        _ = try await upload.run()
        #expect(tokens.requests.map(\.method) == ["OPTIONS", "POST", "PATCH"])
        #expect(tokens.requests.allSatisfy { $0.reason == .request && $0.session == "s-1" && $0.item == 3 && $0.attempt == 3 })
        #expect(tokens.requests.allSatisfy { $0.context == Data("{}".utf8) })
        #expect(tokens.requests.last?.url == upload.server.url("/files/1"))
        #expect(upload.requests.allSatisfy { $0.headers["authorization"] == "Bearer token-0" })
        await upload.end()
    }

    @Test(arguments: [401, 403]) func hookRunsAgainAfterRejection(status: Int) async throws {
        let tokens = Tokens()
        let upload = try TestUpload(size: 10, headers: tokens.hook, Self.script(from: 1, status: status))
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        #expect(tokens.renewals == 1)
        #expect(tokens.requests.filter { $0.reason == .rejected }.map(\.method) == ["POST"])
        await upload.end()
    }

    @Test(arguments: [401, 403]) func secondRejectionIsFinal(status: Int) async throws {
        let tokens = Tokens()
        let upload = try TestUpload(size: 10, headers: tokens.hook, Self.script(from: 5, status: status))
        let error = await upload.failure()
        #expect(error?.failureClass == .credentials)
        #expect(upload.methods == ["POST", "POST"])
        #expect(tokens.renewals == 1)
        await upload.end()
    }

    /// If HEAD is rejected, the client renews the token. If HEAD is rejected again with status 403, the client considers the upload lost.
    @Test func repeatsRejectedHEAD() async throws {
        let tokens = Tokens()
        let renewed = try TestUpload(size: 10, headers: tokens.hook, Self.script(from: 1, status: 403))
        _ = try await renewed.run(from: try renewed.checkpoint())
        #expect(renewed.methods == ["HEAD", "HEAD", "PATCH"])
        #expect(tokens.requests.filter { $0.reason == .rejected }.map(\.method) == ["HEAD"])
        await renewed.end()
        let refused = try TestUpload(size: 10, headers: Tokens().hook, Self.script(from: 5, status: 403))
        let error = await refused.failure(from: try refused.checkpoint())
        #expect(error?.failureClass == .resumeLost && error?.code == .uploadGone)
        #expect(refused.methods == ["HEAD", "HEAD"])
        await refused.end()
    }

    @Test func readsOffsetAfterRejectedPATCH() async throws {
        let tokens = Tokens()
        let upload = try TestUpload(size: 10, headers: tokens.hook) { request, number in
            request.method == "POST" ? [.created] : Self.script(from: 1)(request, number)
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "HEAD", "PATCH"])
        #expect(tokens.renewals == 1)
        await upload.end()
    }

    @Test func repeatsRejectedPATCH() async throws {
        let tokens = Tokens()
        let upload = try TestUpload(size: 10, headers: tokens.hook) { request, number in
            request.method == "HEAD" ? [.offset(0)] : request.method == "POST" ? [.created] : Self.script(from: 1)(request, number)
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH"])
        #expect(tokens.requests.filter { $0.reason == .rejected }.map(\.method) == ["PATCH"])
        await upload.end()
        let refusing = try TestUpload(size: 10, headers: Tokens().hook) { request, _ in
            request.method == "HEAD" ? [.offset(0)] : request.method == "POST" ? [.created] : [.tus(401)]
        }
        #expect(await refusing.failure()?.failureClass == .credentials)
        #expect(refusing.methods == ["POST", "PATCH", "HEAD", "PATCH", "HEAD"])
        await refusing.end()
    }

    @Test(arguments: [["/files/"], ["/files/", "/other/"]]) func renewsOncePerEndpoint(paths: [String]) async throws {
        let tokens = Tokens()
        let count = 8
        let barrier = Locked<[CheckedContinuation<Void, Never>]>([])
        // This hook waits until all requests have the first token, so that the server rejects every one of them.
        let hook: HeaderHook = { request, headers in
            let isFirst = request.method == "POST" && request.reason == .request && tokens.renewals == 0
            let headers = try await tokens.hook(request, headers)
            if isFirst {
                await withCheckedContinuation { continuation in
                    let ready = barrier.withLock { waiting in
                        waiting.append(continuation)
                        return waiting.count == count ? waiting : []
                    }
                    for continuation in ready { continuation.resume() }
                }
            }
            return headers
        }
        let upload = try TestUpload(size: 10, headers: hook, Self.script(from: 1))
        try await withThrowingTaskGroup { group in
            for number in 0..<count {
                var one = upload
                one.endpoint.address = upload.server.url(paths[number % paths.count])
                group.addTask { [one] in try await one.run() }
            }
            try await group.waitForAll()
        }
        #expect(tokens.requests.filter { $0.reason == .rejected }.map(\.url).sorted() == paths.map { upload.server.url($0) })
        #expect(upload.methods.count { $0 == "POST" } == 2 * count)
        await upload.end()
    }

    enum Hook: String, CaseIterable {
        /// The same header for each request.
        case constant
        /// A new header after a rejection.
        case renewing
        /// A different header for each request.
        case signing

        func make() -> HeaderHook {
            let tokens = Tokens()
            let count = Locked(0)
            return { request, headers in
                if self == .renewing { return try await tokens.hook(request, headers) }
                let number = count.withLock { count in
                    count += 1
                    return self == .signing ? count : 0
                }
                var headers = headers
                headers["Authorization"] = "Signature \(request.method)-\(number)"
                return headers
            }
        }
    }

    /// The server also rejects the header that the hook returns after the rejection, so the header is not the cause. The error therefore
    /// does not block the account.
    @Test(arguments: Hook.allCases) func treats403AfterSuccessAsFileError(hook: Hook) async throws {
        let upload = try TestUpload(size: 10, headers: hook.make()) { request, number in
            number == 2 || number == 3 ? [.tus(403)] : Self.script(from: 0)(request, number)
        }
        _ = try await upload.run()
        #expect(await upload.failure()?.failureClass == .permanent)
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "POST", "POST", "POST", "PATCH"])
        await upload.end()
    }

    /// The server has not accepted any request to the second endpoint, so the header may be the cause.
    @Test(arguments: Hook.allCases) func treats403BeforeSuccessAsCredentialError(hook: Hook) async throws {
        var upload = try TestUpload(size: 10, headers: hook.make()) { request, number in
            request.path == "/other/" ? [.tus(403)] : Self.script(from: 0)(request, number)
        }
        _ = try await upload.run()
        upload.endpoint.address = upload.server.url("/other/")
        #expect(await upload.failure()?.failureClass == .credentials)
        await upload.end()
    }

    /// Status 401 always concerns the credentials.
    @Test(arguments: Hook.allCases) func treats401AfterSuccessAsCredentialError(hook: Hook) async throws {
        let upload = try TestUpload(size: 10, headers: hook.make()) { request, number in
            number < 2 ? Self.script(from: 0)(request, number) : [.tus(401)]
        }
        _ = try await upload.run()
        #expect(await upload.failure()?.failureClass == .credentials)
        await upload.end()
    }

    @Test(arguments: ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\u{0}b"]) func rejectsControlCharacters(value: String) async throws {
        let hooked = try TestUpload(
            size: 10,
            headers: { _, headers in
                var headers = headers
                headers["X-Note"] = value
                return headers
            }, Self.script(from: 0))
        var named = try TestUpload(size: 10, Self.script(from: 0))
        named.options.headers = ["X-Note": value]
        for upload in [hooked, named] {
            let error = await upload.failure()
            #expect(error?.failureClass == .permanent)
            #expect(error?.message.contains("X-Note") == true)
            #expect(error?.description.contains("Evil") == false)
            #expect(upload.server.requests.isEmpty)
            await upload.end()
        }
    }

    @Test(arguments: ["Upload-Offset", "tus-resumable", "Content-Length", "Host", "Content-Type", "X-HTTP-Method-Override"])
    func rejectsReservedHeaders(name: String) async throws {
        let upload = try TestUpload(
            size: 10,
            headers: { _, headers in
                var headers = headers
                headers[name] = "1"
                return headers
            }, Self.script(from: 0))
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .invalidHeader)
        #expect(error?.message.lowercased().contains(name.lowercased()) == true)
        #expect(upload.server.requests.isEmpty)
        await upload.end()
    }

    @Test func rejectsRemovedHeaders() async throws {
        let upload = try TestUpload(size: 10, headers: { _, _ in HTTPHeaders() }, Self.script(from: 0))
        #expect(await upload.failure()?.code == .invalidHeader)
        #expect(upload.methods.isEmpty)
        await upload.end()
    }

    @Test func failureOfHookFailsAttempt() async throws {
        struct NoToken: Error {}
        let upload = try TestUpload(size: 10, headers: { _, _ in throw NoToken() }, Self.script(from: 0))
        #expect(await upload.failure()?.failureClass == .transient)
        await upload.end()
        let credentials = TransferError(.credentials, .credentialsUnavailable, "Log in first.")
        let other = try TestUpload(size: 10, headers: { _, _ in throw credentials }, Self.script(from: 0))
        #expect(await other.failure() == credentials)
        await other.end()
    }

    @Test func cancellationDoesNotWaitForHook() async throws {
        let (hookCalls, hookCallsContinuation) = AsyncStream.makeStream(of: Void.self)
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let upload = try TestUpload(
            size: 10,
            headers: { _, headers in
                hookCallsContinuation.finish()
                // This hook ignores cancellation.
                await Task { for await _ in released {} }.value
                return headers
            }, Self.script(from: 0))
        let task = Task { try await upload.run() }
        for await _ in hookCalls {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        release.finish()
        #expect(upload.server.requests.isEmpty)
        await upload.end()
    }

    @Test func hookDoesNotRunForOtherOrigins() async throws {
        let tokens = Tokens()
        let other = try ScriptedServer { request, _ in [request.method == "HEAD" ? .offset(0) : .accepted(10)] }
        var upload = try TestUpload(size: 10, headers: tokens.hook) { _, _ in [] }
        upload.options.uploadURL = other.url("/1")
        _ = try await upload.run()
        #expect(tokens.requests.isEmpty)
        #expect(other.requests.map { $0.headers["authorization"] } == [nil, nil])
        await upload.end()
        other.stop()
    }

    @Test func errorsDoNotRepeatAddedHeaders() async throws {
        let upload = try TestUpload(
            size: 10,
            headers: { _, headers in
                var headers = headers
                headers["X-Signature"] = "sigSECRET"
                return headers
            }
        ) { _, _ in [.tus(400, body: "bad signature sigSECRET")] }
        let error = try #require(await upload.failure())
        #expect(!error.description.contains("SECRET"))
        await upload.end()
    }
}
