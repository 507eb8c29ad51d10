import CurlEngine
import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct SessionHeaderTests {
    @Test func sessionHeadersAreSentWithEachRequestToEndpoint() async throws {
        var upload = try TestUpload(size: 10, answers: [[.created], [.accepted(10)]])
        upload.options.headers = ["X-Project": "blue", "X-Empty": ""]
        _ = try await upload.run()
        #expect(upload.requests.map { $0.headers["x-project"] } == ["blue", "blue"])
        #expect(upload.requests.map { $0.headers["x-empty"] } == ["", ""])
        await upload.end()
    }

    @Test(arguments: ["Upload-Length", "Tus-Resumable", "Authorization", "Cookie", "Content-Type", "Transfer-Encoding"])
    func rejectsReservedNames(name: String) async throws {
        var upload = try TestUpload(size: 10, answers: [])
        upload.options.headers = [name: "x"]
        #expect(await upload.failure()?.failureClass == .permanent)
        #expect(upload.server.requests.isEmpty)
        await upload.end()
    }
}
