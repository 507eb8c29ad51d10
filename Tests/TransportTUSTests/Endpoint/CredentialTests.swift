import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct CredentialTests {
    private static let token = "s3cr3t-t0ken"

    private func upload(_ credentials: CredentialReference..., answers: [[ServerStep]]) throws -> TestUpload {
        var upload = try TestUpload(size: 1, answers: answers)
        upload.endpoint.credentials = credentials
        upload.credentials = FixedCredentials(secrets: ["T": Self.token])
        return upload
    }

    @Test func sendsHeaderOfEachKind() async throws {
        let bearer = try upload(.bearer(.environment("T")), answers: [[.created], [.accepted(1)]])
        _ = try await bearer.run()
        #expect(bearer.requests.map { $0.headers["authorization"] } == Array(repeating: "Bearer \(Self.token)", count: 2))
        await bearer.end()
        let header = try upload(.header("X-Key", .environment("T")), answers: [[.created], [.accepted(1)]])
        _ = try await header.run()
        #expect(header.requests.map { $0.headers["x-key"] } == [Self.token, Self.token])
        await header.end()
        var basic = try upload(.password(.environment("T")), answers: [[.created], [.accepted(1)]])
        basic.endpoint.address = basic.endpoint.address.replacing("http://", with: "http://joe@")
        _ = try await basic.run()
        #expect(basic.requests.first?.headers["authorization"] == "Basic am9lOnMzY3IzdC10MGtlbg==")
        await basic.end()
    }

    @Test func sendsNoCredentialsToOtherOrigins() async throws {
        let other = try ScriptedServer { request, _ in [request.method == "HEAD" ? .offset(0) : .accepted(1)] }
        var upload = try upload(.bearer(.environment("T")), answers: [])
        upload.endpoint.settings["header.X-Tenant"] = "a"
        upload.options.uploadURL = other.url("/1")
        _ = try await upload.run()
        #expect(other.requests.map(\.method) == ["HEAD", "PATCH"])
        #expect(other.requests.allSatisfy { $0.headers["authorization"] == nil && $0.headers["x-tenant"] == nil })
        await upload.end()
        other.stop()
    }

    @Test func redirectsDoNotForwardCredentials() async throws {
        let other = try ScriptedServer { _, _ in [.created] }
        let upload = try upload(.bearer(.environment("T")), answers: [[.answer(307, ["Location": other.url()])]])
        #expect(await upload.failure()?.failureClass == .unreachable)
        #expect(other.requests.isEmpty)
        await upload.end()
        other.stop()
    }

    @Test(arguments: [400, 401, 403, 500]) func errorsDoNotRepeatCredentials(status: Int) async throws {
        let upload = try upload(
            .bearer(.environment("T")), answers: [[.tus(status, body: "bad header Authorization: Bearer \(Self.token)")]])
        let error = try #require(await upload.failure())
        #expect(!"\(error) \(error.message) \(error.cause ?? "")".contains(Self.token))
        await upload.end()
    }

    @Test func errorsDoNotShowURLSignature() async throws {
        var upload = try upload(answers: [[.tus(400, body: "no access for 0123456789abcdef")]])
        upload.endpoint.address += "?signature=0123456789abcdef"
        let error = try #require(await upload.failure())
        #expect(!"\(error)".contains("0123456789abcdef") && error.cause?.contains("no access for [redacted]") == true, "\(error)")
        await upload.end()
    }

    @Test func errorsContainFirstLineOfServerMessage() async throws {
        let upload = try upload(.bearer(.environment("T")), answers: [[.tus(400, body: "the name is\u{7} taken\nmore")]])
        let cause = try #require(await upload.failure()?.cause)
        #expect(cause == "POST returned 400: the name is taken")
        await upload.end()
    }

    @Test(arguments: ["a\r\nX-Evil: 1", "a\nb", "a\u{0}b"]) func rejectsSecretsWithControlCharacters(secret: String) async throws {
        var upload = try upload(.bearer(.environment("T")), answers: [])
        upload.credentials = FixedCredentials(secrets: ["T": secret])
        let error = try #require(await upload.failure())
        #expect(error.failureClass == .credentials)
        #expect(!error.description.contains("Evil"))
        #expect(upload.requests.isEmpty)
        await upload.end()
    }

    @Test func rejectsPasswordWithoutUserName() async throws {
        let upload = try upload(.password(.environment("T")), answers: [])
        #expect(await upload.failure()?.code == .invalidEndpoint)
        await upload.end()
    }

    @Test func treats403AfterAcceptedCredentialsAsFileError() async throws {
        let upload = try upload(
            .bearer(.environment("T")), answers: [[.tus(403)], [.created], [.accepted(1)], [.tus(403)]])
        #expect(await upload.failure()?.failureClass == .credentials)
        _ = try await upload.run()
        #expect(await upload.failure()?.failureClass == .permanent)
        await upload.end()
    }

    /// Two accounts on one server do not affect each other.
    @Test func ignoresCredentialsAcceptedFromOtherAccounts() async throws {
        var upload = try upload(
            .bearer(.environment("T")), answers: [[.created], [.accepted(1)], [.created], [.accepted(1)], [.tus(403)], [.tus(403)]])
        let credentials = upload.credentials
        _ = try await upload.run()
        upload.credentials = FixedCredentials(secrets: ["T": "another-one"])
        _ = try await upload.run()
        upload.credentials = credentials
        #expect(await upload.failure()?.failureClass == .permanent)
        upload.credentials = FixedCredentials(secrets: ["T": "a-third-one"])
        #expect(await upload.failure()?.failureClass == .credentials)
        await upload.end()
    }

    @Test func endpointAcceptsOneOrSeveralCredentials() {
        let one = Endpoint.tus("https://h/files/", credentials: .bearer(.environment("X")))
        let list = Endpoint.tus("https://h/files/", credentials: [.bearer(.environment("X"))])
        #expect(one == list)
        #expect(Endpoint.tus("https://h/files/").credentials.isEmpty)
    }
}
