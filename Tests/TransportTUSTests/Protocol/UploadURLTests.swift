import Foundation
import Logging
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Uploads that another program created.
@Suite struct UploadURLTests {
    @Test func skipsCreation() async throws {
        var upload = try TestUpload(size: 10, offers: "creation,creation-with-upload", answers: [[.offset(0)], [.accepted(10)]])
        upload.options.uploadURL = upload.server.url("/elsewhere/7?signature=x")
        let receipt = try await upload.run()
        #expect(upload.methods == ["HEAD", "PATCH"])
        #expect(upload.requests.allSatisfy { $0.path == "/elsewhere/7?signature=x" })
        #expect(receipt.remoteURL == upload.server.url("/elsewhere/7"))
        #expect(upload.featureRequests == 0)
        await upload.end()
    }

    /// The error concerns the file, not the endpoint.
    @Test(
        arguments: [
            ("ftp://host.example/secret", "\"ftp://host.example\" has the scheme ftp"), ("file:///secret", "has the scheme file"),
            ("/files/secret", "has no scheme"), ("host.example/secret", "has no scheme"), ("", "not a URL"), ("secret", "has no scheme"),
            ("https:///secret", "has no host"), ("https://", "has no host"), ("http:secret", "has no host"),
            ("ht tp://secret", "not a URL"), ("https://host.example/a secret", "not a URL"),
            ("https://host.example:99999/secret", "has an invalid port"),
            ("https://me:secret@host.example/", "contains a user name or a password"),
            ("https://host.example/#secret", "ends with a fragment"),
        ])
    func rejectsInvalidURLsBeforeConnecting(url: String, words: String) async throws {
        var upload = try TestUpload(size: 10, offers: "creation", answers: [])
        upload.options.uploadURL = url
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .invalidUploadURL)
        #expect(error?.message.contains(words) == true, "\(String(describing: error))")
        #expect(error?.description.contains("secret") == false)
        #expect(upload.server.connectionCount == 0)
        let refused = #expect(throws: TransferError.self) { try TUSTransport.validate(upload.options, for: .upload) }
        #expect(refused == error)
        await upload.end()
    }

    @Test(arguments: ["https://host.example/files/1?signature=x%20y", "HTTP://[::1]:8080/", "http://host.example"])
    func acceptsValidURLs(url: String) throws {
        try TUSTransport.validate(AttemptOptions(uploadURL: url), for: .upload)
    }

    /// The queue may remove abandoned content late. By then, the upload may be complete. The upload belongs to the app, so the transport
    /// must not remove it.
    @Test func lateRemovalKeepsUploadOfApp() async throws {
        var upload = try TestUpload(size: 10) { request, number in
            let responses: [ServerStep] = [.offset(0), .accepted(4), .tus(503), .offset(4), .accepted(10)]
            return [request.method == "DELETE" ? .tus(204) : responses[number]]
        }
        upload.options.uploadURL = upload.server.url("/elsewhere/7")
        #expect(await upload.failure()?.failureClass == .transient)
        let abandoned = try #require(upload.recorder.checkpoints.last)
        #expect(abandoned.confirmed == 4)
        _ = try await upload.run(from: abandoned)
        for checkpoint in upload.recorder.checkpoints {
            try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        }
        #expect(upload.methods == ["HEAD", "PATCH", "HEAD", "HEAD", "PATCH"])
        await upload.end()
    }

    /// After a restart, the upload's content may come from an earlier version of the file. An upload without content can be used like a new
    /// upload.
    @Test(arguments: [4, 10]) func rejectsUploadOfAppWithContentAfterRestart(offset: Int) async throws {
        var upload = try TestUpload(size: 10, answers: [[.offset(offset)], [.offset(0)], [.accepted(10)]])
        upload.options.uploadURL = upload.server.url("/elsewhere/secret")
        upload.isRestarted = true
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent && error?.code == .invalidUploadURL)
        #expect(error?.description.contains("secret") == false && error?.description.contains("\(offset) bytes") == true)
        #expect(upload.methods == ["HEAD"])
        _ = try await upload.run()
        #expect(upload.methods == ["HEAD", "HEAD", "PATCH"])
        await upload.end()
    }

    /// An attempt that continues an earlier attempt of the same transfer has a checkpoint, so it may resume.
    @Test func resumesRestartedTransfer() async throws {
        var upload = try TestUpload(size: 10, answers: [[.offset(0)], [.accepted(4)], [.tus(503)], [.offset(4)], [.accepted(10)]])
        upload.options.uploadURL = upload.server.url("/elsewhere/7")
        upload.isRestarted = true
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.methods == ["HEAD", "PATCH", "HEAD", "HEAD", "PATCH"])
        await upload.end()
    }

    @Test func doesNotLogURL() async throws {
        let lines = LogLines()
        var upload = try TestUpload(size: 10, answers: [[.offset(0)], [.accepted(10)]])
        upload.options.uploadURL = upload.server.url("/files/capability?signature=x")
        upload.logger = lines.logger
        _ = try await upload.run()
        let origin = "http://127.0.0.1:\(upload.server.port)"
        #expect(lines.texts(at: .debug) == ["HEAD \(origin)", "PATCH \(origin)"])
        #expect(lines.texts().allSatisfy { !$0.contains("capability") })
        await upload.end()
    }

    @Test func reportsMissingUpload() async throws {
        var upload = try TestUpload(size: 10, answers: [[.tus(404)]])
        upload.options.uploadURL = upload.server.url("/elsewhere/7")
        #expect(await upload.failure()?.failureClass == .resumeLost)
        #expect(upload.methods == ["HEAD"])
        await upload.end()
    }
}
