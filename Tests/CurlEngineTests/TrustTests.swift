import CurlEngine
import Foundation
import Locking
import Testing
import TransferCore
import TransportSupport

/// Server certificates, pinned keys and client certificates. The test creates the certificates.
@Suite(.timeLimit(.minutes(10))) struct TrustTests {
    @Test func trustsOnlyConfiguredCertificates() async throws {
        let server = try await TLSServer.start()
        defer { server.stop() }
        let engine = CurlEngine()
        let stranger = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url))
        }
        #expect(stranger?.kind == .tlsNotTrusted)
        let trusted = try await engine.perform(HTTPRequest(method: "GET", url: server.url, certificateAuthorityFile: server.certificate))
        #expect(trusted.status == 200)
        // A request without that trust does not reuse a connection that was made with it.
        let again = await #expect(throws: CurlEngineError.self) { try await engine.perform(HTTPRequest(method: "GET", url: server.url)) }
        #expect(again?.kind == .tlsNotTrusted)
        let otherName = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(
                HTTPRequest(method: "GET", url: "https://127.0.0.1:\(server.port)/", certificateAuthorityFile: server.certificate))
        }
        #expect(otherName?.kind == .tlsNotTrusted)
        let noFile = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url, certificateAuthorityFile: "/nonexistent.pem"))
        }
        #expect(noFile?.kind == .certificateFileUnusable)
        await engine.shutdown()
    }

    @Test func rejectsOldVersions() async throws {
        let server = try await TLSServer.start(version: "TLSv1_1")
        defer { server.stop() }
        let engine = CurlEngine()
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url, certificateAuthorityFile: server.certificate))
        }
        #expect(error?.kind == .tlsFailed)
        await engine.shutdown()
    }

    @Test func acceptsOnlyPinnedKeys() async throws {
        let server = try await TLSServer.start()
        defer { server.stop() }
        let engine = CurlEngine()
        let pin = try await WorkerThreads(limit: 1).run {
            let key = try openssl(["pkey", "-pubout", "-outform", "DER", "-in", server.key])
            return try openssl(["dgst", "-sha256", "-binary"], input: key).base64EncodedString()
        }
        let other = Data(repeating: 1, count: 32).base64EncodedString()
        var options = ConnectionOptions()
        options.certificateAuthorityFile = server.certificate
        for pins in [[pin], [other, pin], []] {
            options.pinnedPublicKeys = pins
            #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: options)).status == 200)
        }
        options.pinnedPublicKeys = [other]
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: options))
        }
        #expect(error?.kind == .tlsNotTrusted)
        // Invalid pins are errors and not ignored, and file names are not accepted.
        for pin in ["", "sha256//\(pin)", "/etc/passwd", pin.dropLast() + ";"] {
            options.pinnedPublicKeys = [pin]
            let error = await #expect(throws: CurlEngineError.self) {
                try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: options))
            }
            #expect(error?.kind == .invalidRequest)
        }
        await engine.shutdown()
    }

    @Test func insecureVerificationWarnsEachTime() async throws {
        let server = try await TLSServer.start()
        defer { server.stop() }
        let engine = CurlEngine()
        let warnings = Locked<[String]>([])
        var options = ConnectionOptions()
        options.verification = .insecure { message in warnings.withLock { $0.append(message) } }
        for _ in 0..<2 {
            let request = HTTPRequest(method: "GET", url: server.url + "?token=secret", connection: options)
            #expect(try await engine.perform(request).headers["X-Connection"] == "1")
        }
        let messages = warnings.withLock { $0 }
        #expect(messages.count == 2)
        #expect(messages.allSatisfy { $0.contains("https://localhost:\(server.port)") && !$0.contains("secret") })
        let error = await #expect(throws: CurlEngineError.self) { try await engine.perform(HTTPRequest(method: "GET", url: server.url)) }
        #expect(error?.kind == .tlsNotTrusted)
        await engine.shutdown()
    }

    @Test func sendsClientCertificate() async throws {
        let client = try await ClientIdentity.make()
        let server = try await TLSServer.start(version: "TLSv1_2", clientAuthority: client.certificate)
        defer { server.stop() }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        options.certificateAuthorityFile = server.certificate
        func perform() async throws -> HTTPResponse {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: options))
        }
        await #expect(throws: CurlEngineError.self) { try await perform() }

        options.clientCertificate = ClientCertificate(certificateFile: client.certificate, keyFile: client.key)
        #expect(try await perform().headers["X-Client"]?.contains("the client") == true)
        options.clientCertificate = ClientCertificate(
            certificateFile: client.certificate, keyFile: client.encryptedKey, passphrase: Secret(ClientIdentity.passphrase))
        #expect(try await perform().status == 200)

        // libcurl does not prompt on a terminal, and a connection with the correct key is not reused with a wrong one. libcurl 7.88 itself
        // would reuse it.
        for certificate in [
            ClientCertificate(certificateFile: client.certificate, keyFile: client.encryptedKey),
            ClientCertificate(certificateFile: client.certificate, keyFile: client.encryptedKey, passphrase: Secret("sesame street")),
            ClientCertificate(certificateFile: client.certificate, keyFile: server.key),
            ClientCertificate(certificateFile: client.certificate),
            ClientCertificate(certificateFile: "/nonexistent.pem"),
        ] {
            options.clientCertificate = certificate
            let error = await #expect(throws: CurlEngineError.self) { try await perform() }
            #expect(error?.kind == .clientCertificateUnusable)
            #expect(error?.description.contains("sesame") != true)
        }
        await engine.shutdown()
    }

    /// With TLS 1.3, the refusal arrives after the connection is complete.
    @Test(arguments: ["TLSv1_2", "TLSv1_3"]) func reportsRejectedClientCertificate(version: String) async throws {
        let client = try await ClientIdentity.make()
        let stranger = try await ClientIdentity.make()
        let server = try await TLSServer.start(version: version, clientAuthority: client.certificate)
        defer { server.stop() }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        options.certificateAuthorityFile = server.certificate
        options.clientCertificate = ClientCertificate(certificateFile: stranger.certificate, keyFile: stranger.key)
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: options))
        }
        #expect(error?.kind == .clientCertificateUnusable, "\(String(describing: error))")
        options.clientCertificate = nil
        let missing = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: options))
        }
        // Before TLS 1.3, there is no alert for a missing certificate.
        #expect(missing?.kind == (version == "TLSv1_3" ? .clientCertificateUnusable : .tlsFailed), "\(String(describing: missing))")
        await engine.shutdown()
    }

    @Test func usesHTTP2IfNegotiated() async throws {
        let server = try await TLSServer.start(protocols: "h2,http/1.1")
        let oldServer = try await TLSServer.start()
        defer {
            server.stop()
            oldServer.stop()
        }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        options.certificateAuthorityFile = server.certificate
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: options)).version == .http1)
        options.httpVersion = .http2
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: options)).version == .http2)
        options.certificateAuthorityFile = oldServer.certificate
        #expect(try await engine.perform(HTTPRequest(method: "GET", url: oldServer.url, connection: options)).version == .http1)
        await engine.shutdown()
    }
}
