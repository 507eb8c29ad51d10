import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// `PATCH` requests that are sent as `POST` with `X-HTTP-Method-Override`.
@Suite struct MethodOverrideTests {
    private static let script: ScriptedServer.Script = { request, _ in
        switch request.method {
        case "POST" where request.headers["x-http-method-override"] == "PATCH": [.accepted(10)]
        case "POST": [.created]
        case "HEAD": [.offset(0)]
        default: [.answer(405)]
        }
    }

    @Test(arguments: [405, 501]) func overridesPATCHIfNotAllowed(status: Int) async throws {
        let upload = try TestUpload(size: 10) { request, number in
            request.method == "PATCH" ? [.answer(status)] : Self.script(request, number)
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "POST"])
        let request = try #require(upload.requests.last)
        #expect(request.path == "/files/1")
        #expect(request.headers["upload-offset"] == "0")
        #expect(request.body == TemporaryFile.content(size: 10))
        // The transport remembers the override.
        _ = try await upload.run()
        #expect(upload.methods.suffix(2) == ["POST", "POST"])
        await upload.end()
    }

    @Test func settingEnablesMethodOverride() async throws {
        var upload = try TestUpload(size: 10, Self.script)
        upload.endpoint.settings["methodOverride"] = "true"
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST"])
        await upload.end()
    }

    @Test func failsIfOverrideIsRejected() async throws {
        let upload = try TestUpload(size: 10) { request, number in
            request.headers["x-http-method-override"] != nil ? [.answer(405)] : Self.script(request, number)
        }
        #expect(await upload.failure()?.failureClass == .permanent)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "POST", "HEAD"])
        await upload.end()
    }
}
