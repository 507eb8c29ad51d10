import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct RedirectTests {
    private static let token = "s3cr3t"

    private func upload(
        size: Int = 10, origins: [ScriptedServer] = [], _ script: @escaping ScriptedServer.Script
    ) throws -> TestUpload {
        var upload = try TestUpload(size: size, script)
        upload.endpoint.credentials = [.bearer(.environment("T"))]
        upload.credentials = FixedCredentials(secrets: ["T": Self.token])
        if !origins.isEmpty { upload.endpoint.settings["origins"] = origins.map { $0.url("") }.joined(separator: ", ") }
        return upload
    }

    @Test(arguments: [307, 308]) func redirectKeepsMethodAndBody(status: Int) async throws {
        let upload = try upload { request, _ in
            guard request.path.hasPrefix("/new") else { return [.answer(status, ["Location": "/new\(request.path)"])] }
            return switch request.method {
            case "POST": [.created]
            case "HEAD": [.offset(0)]
            default: [.accepted(10)]
            }
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST", "PATCH", "PATCH"])
        #expect(upload.requests.map(\.body) == [[], [], TemporaryFile.content(size: 10), TemporaryFile.content(size: 10)])
        #expect(upload.requests.allSatisfy { $0.headers["authorization"] == "Bearer \(Self.token)" })
        _ = try await upload.run(from: try upload.checkpoint())
        #expect(upload.methods.suffix(4) == ["HEAD", "HEAD", "PATCH", "PATCH"])
        try await upload.transport.discard(try upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.methods.suffix(2) == ["DELETE", "DELETE"])
        await upload.end()
    }

    @Test(arguments: [301, 302, 303]) func explainsRedirectsThatChangeMethod(status: Int) async throws {
        let upload = try upload { _, _ in [.tus(status, ["Location": "https://uploads.example.com/secret-path"])] }
        let error = try #require(await upload.failure())
        #expect(error.failureClass == .unreachable)
        #expect(error.message.contains("https://uploads.example.com"))
        #expect(!error.description.contains("secret-path"))
        #expect(upload.methods == ["POST"])
        await upload.end()
    }

    @Test func stopsRedirectLoops() async throws {
        let upload = try upload { _, _ in [.answer(307, ["Location": "/files/"])] }
        #expect(await upload.failure()?.failureClass == .unreachable)
        #expect(upload.methods == Array(repeating: "POST", count: 6))
        await upload.end()
        let resumed = try self.upload { _, _ in [.answer(307, ["Location": "/files/1"])] }
        #expect(await resumed.failure(from: try resumed.checkpoint())?.failureClass == .protocolViolation)
        await resumed.end()
    }

    @Test func followsOnlyListedOrigins() async throws {
        let other = try ScriptedServer { request, _ in [request.method == "POST" ? .created : .accepted(10)] }
        let refused = try upload { _, _ in [.answer(308, ["Location": other.url()])] }
        let error = await refused.failure()
        #expect(error?.failureClass == .unreachable)
        #expect(error?.message.contains(other.url("")) == true)
        #expect(other.requests.isEmpty)
        await refused.end()
        let followed = try upload(origins: [other]) { _, _ in [.answer(308, ["Location": other.url()])] }
        _ = try await followed.run()
        #expect(other.requests.map(\.method) == ["POST", "PATCH"])
        // A redirect never forwards credentials to another origin. The PATCH request does contain credentials, because the endpoint's setting
        // `origins` lists the upload's origin.
        #expect(other.requests.map { $0.headers["authorization"] } == [nil, "Bearer \(Self.token)"])
        await followed.end()
        other.stop()
    }

    @Test func sendsCredentialsToListedOrigins() async throws {
        let other = try ScriptedServer { _, _ in [.accepted(10)] }
        let upload = try upload(origins: [other]) { _, _ in [.tus(201, ["Location": other.url("/1")])] }
        _ = try await upload.run()
        #expect(other.requests.map(\.method) == ["PATCH"])
        #expect(other.requests.last?.headers["authorization"] == "Bearer \(Self.token)")
        await upload.end()
        other.stop()
    }

    @Test(arguments: ["example.com", "https://example.com/path", "https://joe@example.com", "ftp://example.com", "https://"])
    func rejectsInvalidOrigins(origins: String) async throws {
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.settings["origins"] = origins
        #expect(await upload.failure()?.code == .invalidEndpoint)
        await upload.end()
    }
}
