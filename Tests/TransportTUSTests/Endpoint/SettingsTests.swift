import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportTUS

@Suite struct SettingsTests {
    @Test func sendsHeadersWithEachRequest() async throws {
        var upload = try TestUpload(size: 1, answers: [[.created], [.accepted(1)]])
        upload.endpoint.settings = ["header.X-Tenant": "blue"]
        _ = try await upload.run()
        #expect(upload.requests.map { $0.headers["x-tenant"] } == ["blue", "blue"])
        await upload.end()
    }

    @Test(
        arguments: [
            "unknown", "header.Authorization", "header.Upload-Offset", "header.tus-resumable", "header.Host", "header.Content-Length",
            "header.",
            "header.a b",
        ])
    func rejectsInvalidSettings(key: String) async throws {
        var upload = try TestUpload(size: 1, answers: [])
        upload.endpoint.settings = [key: "value"]
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .invalidEndpoint)
        #expect(upload.requests.isEmpty)
        await upload.end()
    }

    @Test func sendsUserAgentOfSession() async throws {
        var upload = try TestUpload(size: 1, answers: [[.created], [.accepted(1)]])
        upload.options.headers = ["User-Agent": "Studio/1"]
        _ = try await upload.run()
        #expect(upload.requests.map { $0.headers["user-agent"] } == ["Studio/1", "Studio/1"])
        await upload.end()
    }

    @Test(arguments: ["a\r\nX: 1", "a\nb"]) func rejectsHeaderValuesWithLineBreaks(value: String) async throws {
        var upload = try TestUpload(size: 1, answers: [])
        upload.endpoint.settings = ["header.X-A": value]
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(upload.requests.isEmpty)
        let refused = #expect(throws: TransferError.self) { try TUSTransport.validate(upload.endpoint) }
        #expect(refused == error)
        await upload.end()
    }

    @Test(
        arguments: [
            ("Upload-Offset", "1", "Upload-Offset is reserved by the tus transport; remove the header"),
            ("tus-resumable", "1", "tus-resumable is reserved by the tus transport; remove the header"),
            ("Host", "a", "Host is reserved by the tus transport; remove the header"),
            ("Authorization", "secret", "Authorization is a secret; add it as a credential of the endpoint, not in a session"),
            ("", "a", "is not a header name"), ("a b", "a", "is not a header name"),
            ("é", "a", "is not a header name"), ("a:", "a", "is not a header name"),
            ("X-A", "secret\r\nX: 1", "The value of the header X-A contains a line break"),
            ("X-A", "secret\0", "The value of the header X-A"),
        ])
    func rejectsInvalidSessionHeaders(name: String, value: String, words: String) async throws {
        for direction in [TransferDirection.upload, .download] {
            let refused = #expect(throws: TransferError.self) {
                try TUSTransport.validate(AttemptOptions(headers: [name: value]), for: direction)
            }
            #expect(refused?.failureClass == .permanent)
            #expect(refused?.message.contains(words) == true, "\(String(describing: refused))")
            #expect(refused?.message.contains("setting") == false && refused?.message.contains("secret\r") == false)
        }
        var upload = try TestUpload(size: 1, answers: [])
        upload.options.headers = [name: value]
        #expect(await upload.failure()?.message.contains(words) == true)
        #expect(upload.server.connectionCount == 0)
        await upload.end()
    }
}
