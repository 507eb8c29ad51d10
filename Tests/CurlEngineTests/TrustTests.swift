import CurlEngine
import Testing

/// Whom the engine trusts. The server has a certificate made for the test.
@Suite struct TrustTests {
    @Test func onlyWhatIsNamedIsTrusted() async throws {
        let server = try await TLSServer.start(version: "TLSv1_3")
        defer { server.stop() }
        let engine = CurlEngine()
        let url = "https://localhost:\(server.port)/"
        let stranger = await #expect(throws: CurlEngineError.self) { try await engine.perform(HTTPRequest(method: "GET", url: url)) }
        #expect(stranger?.kind == .tlsNotTrusted)
        let trusted = try await engine.perform(HTTPRequest(method: "GET", url: url, certificateAuthorityFile: server.certificate))
        #expect(trusted.status == 200)
        // A connection made under that trust is no way in for a request without it.
        let again = await #expect(throws: CurlEngineError.self) { try await engine.perform(HTTPRequest(method: "GET", url: url)) }
        #expect(again?.kind == .tlsNotTrusted)
        let otherName = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(
                HTTPRequest(method: "GET", url: "https://127.0.0.1:\(server.port)/", certificateAuthorityFile: server.certificate))
        }
        #expect(otherName?.kind == .tlsNotTrusted)
        let noFile = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: url, certificateAuthorityFile: "/nonexistent.pem"))
        }
        #expect(noFile?.kind == .certificateFileUnusable)
        await engine.shutdown()
    }

    @Test func oldVersionsAreRefused() async throws {
        let server = try await TLSServer.start(version: "TLSv1_1")
        defer { server.stop() }
        let engine = CurlEngine()
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(
                HTTPRequest(method: "GET", url: "https://localhost:\(server.port)/", certificateAuthorityFile: server.certificate))
        }
        #expect(error?.kind == .tlsFailed)
        await engine.shutdown()
    }
}
