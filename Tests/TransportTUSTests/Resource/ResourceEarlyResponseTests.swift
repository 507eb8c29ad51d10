import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Servers of the IETF protocol *Resumable Uploads for HTTP* that claim to have the whole file before they can have received it.
@Suite struct ResourceEarlyResponseTests {
    private static let size = 20_000_000

    /// Reads the start of the content, and responds.
    private static func answer(_ status: Int, _ lines: String) -> [ServerStep] {
        [
            .raw("HTTP/1.1 100 Continue\r\n\r\n"), .read(1_000_000),
            .raw("HTTP/1.1 \(status) Scripted\r\n\(lines)Content-Length: 0\r\nConnection: close\r\n\r\n"), .silence,
        ]
    }

    /// The first two responses come from the resource that processes the file. The other two have no header of the protocol, like a proxy's
    /// responses.
    @Test(arguments: [("8", "Upload-Complete: ?1\r\n"), ("10", "Upload-Complete: ?1\r\n"), ("6", ""), ("10", "")])
    func rejectsEarlySuccessOfCreation(version: String, lines: String) async throws {
        let upload = try TestUpload.resource(size: Self.size, version: version, answers: [Self.answer(200, lines)])
        let failure = await upload.failure()
        #expect(failure?.code == .invalidResponse, "\(String(describing: failure))")
        #expect(upload.recorder.progress.allSatisfy { $0.confirmed == 0 })
        #expect(upload.methods == ["POST"])
        await upload.end()
    }

    /// Only this client sends to a new upload, so an offset beyond the sent bytes is wrong.
    @Test func rejectsEarlyOffsetOfCreation() async throws {
        let lines = "Location: /up/1\r\nUpload-Complete: ?0\r\nUpload-Offset: \(Self.size)\r\n"
        let upload = try TestUpload.resource(
            size: Self.size, version: "10", answers: [Self.answer(201, lines), [.answer(200, ["Upload-Complete": "?1"])]])
        let failure = await upload.failure()
        #expect(failure?.failureClass == .resumeLost, "\(String(describing: failure))")
        #expect(upload.recorder.progress.allSatisfy { $0.confirmed == 0 })
        #expect(upload.methods == ["POST"])
        await upload.end()
    }

    @Test func rejectsEarlySuccessOfPATCH() async throws {
        var upload = try TestUpload.resource(
            size: Self.size, version: "10",
            answers: [
                [.answer(201, ["Location": "/up/1", "Upload-Complete": "?0", "Upload-Offset": "0"])],
                Self.answer(200, "Upload-Complete: ?1\r\n"),
            ])
        upload.options.creation = .separate
        let failure = await upload.failure()
        #expect(failure?.code == .invalidResponse, "\(String(describing: failure))")
        #expect(upload.recorder.progress.allSatisfy { $0.confirmed == 0 })
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }
}
