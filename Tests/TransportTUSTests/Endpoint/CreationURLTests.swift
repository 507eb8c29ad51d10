import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Uploads that are created at a URL other than the endpoint's address.
@Suite struct CreationURLTests {
    private static let script: ServerScript = { location in
        { request, _ in
            switch request.method {
            case "OPTIONS": [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation"])]
            case "POST": [.tus(201, ["Location": location])]
            default: [.accepted(10)]
            }
        }
    }

    private typealias ServerScript = @Sendable (_ location: String) -> ScriptedServer.Script

    @Test func createsUploadAtURL() async throws {
        var upload = try TestUpload(size: 10, offers: "creation", answers: [[.created], [.accepted(10)]])
        upload.options.creationURL = upload.server.url("/projects/7/?signature=x")
        let receipt = try await upload.run()
        #expect(upload.requests.map(\.path) == ["/projects/7/?signature=x", "/files/1"])
        #expect(upload.server.requests.first.map { [$0.method, $0.path] } == ["OPTIONS", "/projects/7/?signature=x"])
        #expect(receipt.remoteURL == upload.server.url("/files/1"))
        await upload.end()
    }

    @Test func resumesWithoutCreation() async throws {
        var upload = try TestUpload(size: 10, answers: [[.offset(4)], [.accepted(10)]])
        upload.options.creationURL = upload.server.url("/projects/7/")
        _ = try await upload.run(from: upload.checkpoint(confirmed: 4))
        #expect(upload.requests.map(\.path) == ["/files/1", "/files/1"])
        await upload.end()
    }

    @Test func rejectsUntrustedOriginWithoutConnecting() async throws {
        let other = try ScriptedServer(Self.script("/files/1"))
        var upload = try TestUpload(size: 10, answers: [])
        upload.options.creationURL = other.url("/secret/")
        let error = await upload.failure()
        #expect(error?.failureClass == .unsupported && error?.code == .invalidUploadURL)
        #expect(error?.message.contains("(--setting 'origins=\(other.url(""))')") == true, "\(String(describing: error))")
        #expect(error?.description.contains("secret") == false)
        #expect(other.connectionCount == 0 && upload.server.connectionCount == 0)
        let refusal = #expect(throws: TransferError.self) {
            try TUSTransport.validate(upload.options, for: .upload, at: upload.endpoint)
        }
        #expect(refusal == error)
        await upload.end()
        other.stop()
    }

    /// The upload's own URL may be at any trusted origin, including the endpoint's origin.
    @Test(arguments: [true, false]) func sendsCredentialsToTrustedOrigin(returnsToEndpoint: Bool) async throws {
        var upload = try TestUpload(size: 10, answers: [[.accepted(10)]])
        let other = try ScriptedServer(Self.script(returnsToEndpoint ? upload.server.url("/files/1") : "/files/1"))
        upload.endpoint = .tus(
            upload.server.url(), credentials: .bearer(.environment("T")),
            options: TUSOptions(requests: RequestOptions(origins: [other.url("")])))
        upload.credentials.secrets = ["T": "t0ken"]
        upload.options.creationURL = other.url("/projects/7/")
        try TUSTransport.validate(upload.options, for: .upload, at: upload.endpoint)
        let receipt = try await upload.run()
        #expect(receipt.remoteURL == (returnsToEndpoint ? upload.server : other).url("/files/1"))
        let requests = other.requests + upload.server.requests
        #expect(requests.map(\.method) == ["OPTIONS", "POST", "PATCH"])
        #expect(requests.allSatisfy { $0.headers["authorization"] == "Bearer t0ken" })
        await upload.end()
        other.stop()
    }

    @Test(arguments: ["ftp://host.example/secret", "/secret", "https://me:secret@host.example/", "https://host.example/#secret"])
    func rejectsInvalidURLs(url: String) async throws {
        var upload = try TestUpload(size: 10, answers: [])
        upload.options.creationURL = url
        let error = await upload.failure()
        #expect(error?.code == .invalidUploadURL && error?.message.contains("creation URL") == true)
        #expect(error?.description.contains("secret") == false)
        #expect(upload.server.connectionCount == 0)
        await upload.end()
    }

    @Test func rejectsCreationURLOfDownload() {
        let error = #expect(throws: TransferError.self) {
            try TUSTransport.validate(AttemptOptions(creationURL: "https://host.example/files/"), for: .download)
        }
        #expect(error?.failureClass == .unsupported)
    }

    @Test func errorsNameOriginOfURLWithoutSignature() async throws {
        let other = try ScriptedServer { _, _ in [.tus(400, body: "bad signature 0123456789abcdef")] }
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.settings["origins"] = other.url("")
        upload.options.creationURL = other.url("/files/?signature=0123456789abcdef")
        let error = await upload.failure()
        #expect(error?.message.contains(other.url("")) == true && error?.description.contains("0123456789abcdef") == false)
        await upload.end()
        other.stop()
    }
}
