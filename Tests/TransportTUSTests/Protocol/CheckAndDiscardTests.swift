import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct CheckAndDiscardTests {
    @Test func reportsFeatures() async throws {
        let upload = try TestUpload(
            size: 1,
            options: [.answer(204, ["Tus-Version": "1.0.0,0.2.2", "Tus-Extension": "creation, termination", "Tus-Max-Size": "1000"])],
            answers: [])
        let report = try await upload.transport.check(upload.endpoint, credentials: upload.credentials)
        #expect(report.version == "1.0.0")
        #expect(report.features == ["creation", "termination"])
        #expect(report.maximumSize == 1000)
        #expect(upload.server.requests.first?.headers["tus-resumable"] == nil)
        await upload.end()
    }

    @Test(arguments: [
        (ServerStep.answer(200, body: "hello"), FailureClass.unreachable, true), (.answer(404), .unreachable, true),
        (.answer(405), .unreachable, true), (.answer(200, ["Content-Type": "text/html"], body: "<html>"), .unreachable, true),
        (.answer(204, ["Tus-Version": "2.0"]), .permanent, false), (.answer(412, ["Tus-Version": "2.0"]), .permanent, false),
        (.answer(204, ["Tus-Resumable": "2.0"]), .permanent, false), (.answer(401), .credentials, false),
        (.answer(302, ["Location": "/login"]), .unreachable, false), (.answer(503), .transient, false),
    ])
    func rejectsOtherServers(response: ServerStep, expected: FailureClass, getsMoreRequests: Bool) async throws {
        let upload = try TestUpload(size: 1, options: [response]) { _, _ in [.answer(404)] }
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.check(upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.failureClass == expected)
        #expect(upload.server.requests.map(\.method) == (getsMoreRequests ? ["OPTIONS", "OPTIONS", "HEAD"] : ["OPTIONS"]))
        await upload.end()
    }

    /// Uploads to a server without a feature list work, because they do not need the response to OPTIONS. The report lists no features for
    /// such a server.
    @Test(arguments: [200, 204, 400, 403, 404, 405, 410, 501], [404, 403, 410, 400, 500]) func acceptsServerWithoutFeatureList(
        status: Int, headStatus: Int
    ) async throws {
        let upload = try TestUpload(size: 1, options: [.answer(status)]) { _, _ in [.tus(headStatus)] }
        let report = try await upload.transport.check(upload.endpoint, credentials: upload.credentials)
        #expect(report.version == "1.0.0")
        #expect(report.features.isEmpty && report.maximumSize == nil)
        // A broken connection can cause status 400, so after this status, the client repeats each of the two OPTIONS requests once.
        let count = status == 400 ? 4 : 2
        #expect(upload.server.requests.map(\.method) == [String](repeating: "OPTIONS", count: count) + ["HEAD"], "no upload is created")
        let last = try #require(upload.requests.last)
        #expect(last.path.hasPrefix("/files/") && last.path.count > "/files/".count && !last.path.hasPrefix("/files//"))
        await upload.end()
    }

    /// aiohttp-tus lists its features only if the request contains `Tus-Resumable`.
    @Test func repeatsOPTIONSWithVersion() async throws {
        let server = Locked<ScriptedServer?>(nil)
        let upload = try TestUpload(
            size: 1,
            options: server.withLock({ $0 })?.requests.last?.headers["tus-resumable"] == "1.0.0"
                ? [.tus(204, ["Tus-Extension": "creation,termination", "Tus-Max-Size": "1000"])] : [.answer(200)],
            answers: [])
        server.withLock { $0 = upload.server }
        let report = try await upload.transport.check(upload.endpoint, credentials: upload.credentials)
        #expect(report.version == "1.0.0")
        #expect(report.features == ["creation", "termination"])
        #expect(report.maximumSize == 1000)
        #expect(upload.featureRequests == 2 && upload.methods.isEmpty)
        server.withLock { $0 = nil }
        await upload.end()
    }

    @Test func reportsCredentialsRejectedByHEAD() async throws {
        let upload = try TestUpload(size: 1, options: [.answer(200)], answers: [[.answer(401)]])
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.check(upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.failureClass == .credentials)
        await upload.end()
    }

    @Test(arguments: [204, 200, 404, 410]) func treatsMissingUploadAsRemoved(status: Int) async throws {
        let upload = try TestUpload(size: 1, answers: [[.tus(status)]])
        try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.methods == ["DELETE"])
        #expect(upload.requests.first?.path == "/files/1")
        await upload.end()
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let response: ServerStep
        let failureClass: FailureClass
        let code: TransferError.Code
        let testDescription: String

        init(_ status: Int, _ failureClass: FailureClass, _ code: TransferError.Code) {
            response = .tus(status, ["Tus-Version": "3"])
            (self.failureClass, self.code, testDescription) = (failureClass, code, "\(status)")
        }

        init(_ name: String, _ response: ServerStep) {
            self.response = response
            (failureClass, code, testDescription) = (.unreachable, .notThisProtocol, name)
        }
    }

    /// If the server does not allow the removal, the failure class is `unsupported`, and the upload stays on the server until it expires. If the
    /// server sends a login page, a later removal may succeed.
    static let refusals: [Refusal] =
        [401, 403].map { Refusal($0, .unsupported, .credentialsRejected) } + [405, 501].map { Refusal($0, .unsupported, .unsupported) }
        + [301, 302, 303, 307, 308].map { Refusal($0, .unreachable, .notThisProtocol) }
        + [
            Refusal("302 to a login page", .answer(302, ["Location": "/login"])),
            Refusal("307 to another origin", .answer(307, ["Location": "https://127.0.0.2/files/1"])),
            Refusal("204 without a version", .answer(204)),
            Refusal("200 with a page", .answer(200, ["Content-Type": "text/html"], body: "<html>Log in</html>")),
        ] + [400].map { Refusal($0, .permanent, .rejected) } + [412].map { Refusal($0, .permanent, .unsupportedVersion) }
        + [407].map { Refusal($0, .credentials, .credentialsRejected) }
        + [408, 409, 423, 425, 429, 500].map { Refusal($0, .transient, .serverError) }
        + [502, 503, 504].map { Refusal($0, .transient, .serverUnavailable) }

    @Test(arguments: refusals) func reportsFailedRemoval(_ refusal: Refusal) async throws {
        let upload = try TestUpload(size: 1, answers: [[refusal.response]])
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.failureClass == refusal.failureClass)
        #expect(error?.code == refusal.code)
        #expect(upload.methods == ["DELETE"])
        await upload.end()
    }

    /// The upload is unavailable, regardless of which server sends the page.
    @Test(arguments: [404, 410]) func treatsUploadWithNotFoundPageAsRemoved(status: Int) async throws {
        let upload = try TestUpload(size: 1, answers: [[.answer(status, ["Content-Type": "text/html"], body: "<html>")]])
        try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.methods == ["DELETE"])
        await upload.end()
    }

    @Test(arguments: [401, 403]) func hookRunsAgainBeforeRemovalFails(status: Int) async throws {
        let tokens = Tokens()
        let upload = try TestUpload(size: 1, headers: tokens.hook) { _, number in [number == 1 ? .tus(204) : .tus(status)] }
        try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.failureClass == .unsupported)
        #expect(upload.methods == ["DELETE", "DELETE", "DELETE", "DELETE"])
        #expect(tokens.renewals == 2)
        await upload.end()
    }

    /// All requests except OPTIONS contain the version (tus 1.0.0, "Tus-Resumable").
    @Test func eachRequestContainsVersion() async throws {
        let upload = try TestUpload(size: 1, offers: "creation") { request, _ in
            switch request.method {
            case "POST": [.created]
            case "HEAD": [.offset(0)]
            case "DELETE": [.tus(204)]
            default: [.accepted(1)]
            }
        }
        _ = try await upload.run()
        _ = try await upload.run(from: upload.checkpoint())
        try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH", "DELETE"])
        #expect(upload.requests.allSatisfy { $0.headers["tus-resumable"] == "1.0.0" })
        #expect(upload.server.requests.first?.method == "OPTIONS")
        #expect(upload.server.requests.first?.headers["tus-resumable"] == nil)
        await upload.end()
    }

    @Test func sendsNothingWithoutUpload() async throws {
        let upload = try TestUpload(size: 1, answers: [])
        let checkpoint = Checkpoint(data: Data("{}".utf8), confirmed: 0)
        try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.server.requests.isEmpty)
        await upload.end()
    }
}
