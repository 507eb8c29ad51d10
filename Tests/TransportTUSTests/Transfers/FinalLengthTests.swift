import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// The length of a concatenated upload must be the sum of the lengths of its segments (extension *concatenation*).
@Suite struct FinalLengthTests {
    /// The client rejects a different length even if the offset is unknown or equals the expected length.
    @Test(arguments: [nil, 999, 1000]) func rejectsOtherLength(offset: Int?) async throws {
        let server = ConcatenationTests.Server { request in
            guard request.method == "HEAD" else { return nil }
            return [.tus(200, ["Upload-Length": "999"].merging(offset.map { ["Upload-Offset": "\($0)"] } ?? [:]) { $1 })]
        }
        var upload = try TestUpload(size: 1000, offers: "creation,concatenation") { request, _ in server.answer(request) }
        upload.endpoint.settings["parallelThreshold"] = "100"
        upload.options.segmentsPerFile = 2
        let error = await upload.failure()
        #expect(error?.failureClass == .resumeLost && error?.code == .uploadGone)
        #expect(error?.message.contains("a file of 999 bytes from segments of 1000") == true)
        #expect(upload.methods.count { $0 == "DELETE" } == 0, "the segments may be the only copy of the file on the server")
        await upload.end()
    }
}
