import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// What a server made of a file's parts has to be as long as they are (extension *concatenation*).
@Suite struct FinalLengthTests {
    /// Also while it does not say how much of it there is, and where it says that all of ours is there.
    @Test(arguments: [nil, 999, 1000]) func aFileOfAnotherLengthIsNotOurs(offset: Int?) async throws {
        let server = ConcatenationTests.Server { request in
            guard request.method == "HEAD" else { return nil }
            return [.tus(200, ["Upload-Length": "999"].merging(offset.map { ["Upload-Offset": "\($0)"] } ?? [:]) { $1 })]
        }
        var upload = try TestUpload(size: 1000, offers: "creation,concatenation") { request, _ in server.answer(request) }
        upload.endpoint.settings["parallelThreshold"] = "100"
        upload.options.parallel = 2
        let error = await upload.failure()
        #expect(error?.failureClass == .resumeLost && error?.code == .uploadGone)
        #expect(error?.message.contains("a file of 999 bytes from segments of 1000") == true)
        #expect(upload.methods.count { $0 == "DELETE" } == 0, "the parts may be all that there is of the file")
        await upload.end()
    }
}
