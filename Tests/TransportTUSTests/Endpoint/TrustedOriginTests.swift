import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// The client sends content only to origins that the endpoint trusts, and to upload URLs that the app sets.
@Suite struct TrustedOriginTests {
    @Test(arguments: ["creation", "creation,creation-with-upload", "creation,concatenation", "creation,creation-defer-length"])
    func rejectsLocationAtOtherOrigin(offers: String) async throws {
        let other = try ScriptedServer { _, _ in [.accepted(10)] }
        var upload = try TestUpload(size: 10, offers: offers) { _, _ in [.tus(201, ["Location": other.url("/secret")])] }
        upload.options.segmentsPerFile = 2
        upload.endpoint.settings["parallelThreshold"] = "1"
        let stream = try TestStream(upload.file, total: 10, ahead: 20)
        let error = await upload.failure(source: offers.contains("defer") ? stream.source : nil)
        #expect(error?.failureClass == .permanent && error?.code == .invalidResponse)
        #expect(error?.message.contains("origins=\(other.url(""))") == true, "\(String(describing: error))")
        #expect(error?.description.contains("secret") == false)
        #expect(other.connectionCount == 0)
        await upload.end()
        other.stop()
    }

    /// An address such as localhost may refer to a different server than the user expects.
    @Test(arguments: [
        "http://127.0.0.1:1/files/1", "http://localhost/files/1", "http://169.254.169.254/latest", "https://127.0.0.1/files/1",
    ])
    func sendsNothingToOtherAddresses(location: String) async throws {
        let upload = try TestUpload(size: 10) { _, _ in [.tus(201, ["Location": location])] }
        #expect(await upload.failure()?.code == .invalidResponse)
        #expect(upload.methods == ["POST"])
        await upload.end()
    }

    @Test func uploadURLOfAppMayHaveAnyOrigin() async throws {
        let other = try ScriptedServer { request, _ in [request.method == "HEAD" ? .offset(0) : .accepted(10)] }
        var upload = try TestUpload(size: 10, answers: [])
        upload.options.uploadURL = other.url("/1")
        _ = try await upload.run()
        #expect(other.requests.map(\.method) == ["HEAD", "PATCH"])
        await upload.end()
        other.stop()
    }
}
