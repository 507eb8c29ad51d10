import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// What a session wants otherwise than its endpoint.
@Suite struct SessionSettingTests {
    @Test func aSessionSendsAForm() async throws {
        var transfer = try TestTransfer("put", size: 3, answers: [[.answer(200)], [.answer(200)]])
        transfer.endpoint.settings = ["field.project": "blue", "fileField": "upload"]
        transfer.options.settings = ["upload": "form", "fileField": "reel"]
        _ = try await transfer.run()
        transfer.options.settings = [:]
        _ = try await transfer.run()
        let requests = transfer.server.requests
        #expect(requests.map(\.method) == ["POST", "PUT"])
        #expect(requests.map(\.path) == ["/files/", "/files/a.bin"])
        let form = String(decoding: requests[0].body, as: UTF8.self)
        #expect(form.contains("name=\"project\"\r\n\r\nblue\r\n"))
        #expect(form.contains("name=\"reel\"; filename=\"a.bin\""))
        await transfer.end()
    }

    @Test func aSessionPutsItsFiles() async throws {
        var transfer = try TestTransfer("form", "/{path}", size: 3, answers: [[.answer(201)]])
        transfer.options.settings = ["upload": "put", "contentType": "text/x-own"]
        _ = try await transfer.run()
        #expect(transfer.server.requests.map { "\($0.method) \($0.path)" } == ["PUT /a.bin"])
        #expect(transfer.server.requests.first?.headers["content-type"] == "text/x-own")
        await transfer.end()
    }

    /// Who is trusted, and with what, is the endpoint's to say.
    @Test(arguments: ["origins", "insecure", "caFile", "proxy", "clientCertificate", "header.X-Own", "upload ", "field."])
    func otherSettingsAreNotForSessions(key: String) async throws {
        var transfer = try TestTransfer("put", size: 3, answers: [[.answer(200)]])
        transfer.options.settings = [key: "true"]
        let error = await transfer.failure()
        #expect(error?.code == .invalidEndpoint)
        #expect(error?.message.contains(key) == true)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }

    @Test(arguments: [["upload": "post"], ["file.a": "relative"], ["file.a": ""], ["transferTimeout": "0"]])
    func theirValuesAreChecked(settings: [String: String]) async throws {
        var transfer = try TestTransfer("form", size: 3, answers: [[.answer(200)]])
        transfer.options.settings = settings
        #expect(await transfer.failure()?.code == .invalidEndpoint)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }

    @Test func theWayIsNoSettingOfEndpoints() {
        #expect(throws: TransferError.self) { try HTTPTransport.validate(.http("https+put://host/", settings: ["upload": "form"])) }
    }
}
