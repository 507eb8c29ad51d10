import CurlEngine
import Foundation
import Locking
import Testing
import TransferCore
import TransportSupport

/// Server certificates, pinned keys and client certificates.
@Suite(.timeLimit(.minutes(10))) struct TrustTests {
    private func trusting(_ file: String) -> ConnectionOptions {
        var options = ConnectionOptions()
        options.certificateAuthorityFile = file
        return options
    }

    @Test func trustsOnlyConfiguredCertificates() async throws {
        let server = try await TLSServer.start()
        defer { server.stop() }
        let engine = CurlEngine()
        let untrusted = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url))
        }
        #expect(untrusted?.kind == .tlsNotTrusted)
        let trusted = try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: trusting(server.certificate)))
        #expect(trusted.status == 200)
        // A request that does not trust the certificate must not reuse the connection of a request that does.
        let again = await #expect(throws: CurlEngineError.self) { try await engine.perform(HTTPRequest(method: "GET", url: server.url)) }
        #expect(again?.kind == .tlsNotTrusted)
        let otherName = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(
                HTTPRequest(method: "GET", url: "https://127.0.0.1:\(server.port)/", connection: trusting(server.certificate)))
        }
        #expect(otherName?.kind == .tlsNotTrusted)
        let noFile = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: trusting("/nonexistent.pem")))
        }
        #expect(noFile?.kind == .certificateFileUnusable)
        await engine.shutdown()
    }

    @Test func rejectsOldTLSVersions() async throws {
        let server = try await TLSServer.start(version: "TLSv1_1")
        defer { server.stop() }
        let engine = CurlEngine()
        let error = await #expect(throws: CurlEngineError.self) {
            try await engine.perform(HTTPRequest(method: "GET", url: server.url, connection: trusting(server.certificate)))
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
        // Invalid pins cause an error and are not ignored. File names are not valid pins.
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

    /// The warnings name the server, but no component of the URL that may be a password. The engine is shut down, so it sends nothing.
    @Test(arguments: [
        ("https://user:secret@/x", "a server"), ("https://user:se/cret@host/", "a server"), ("https://user:secret@host/", "a server"),
        ("https://user:se?cret@host/", "a server"), ("https:/host/secret", "a server"), ("secret", "a server"),
        ("https://host:8443/user@example.com/", "https://host:8443"), ("https://[::1]:8443/secret", "https://[::1]:8443"),
        ("https://[::1]?secret", "https://[::1]"), ("http://host", "http://host"),
    ])
    func insecureVerificationNeverShowsSecrets(url: String, name: String) async throws {
        let engine = CurlEngine()
        await engine.shutdown()
        let warnings = Locked<[String]>([])
        var options = ConnectionOptions()
        options.verification = .insecure { message in warnings.withLock { $0.append(message) } }
        let request = HTTPRequest(method: "GET", url: url, connection: options)
        let error = await #expect(throws: CurlEngineError.self) { try await engine.perform(request) }
        #expect(error?.kind == .shutDown)
        #expect(warnings.withLock { $0 }.map { $0.prefix { $0 != "," } } == ["The certificate of \(name) is not verified"])
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

        // libcurl must not prompt for a passphrase on the terminal. A connection that was opened with the correct key must not be reused
        // for a wrong key, as libcurl 7.88 would do by default.
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

    /// With TLS 1.3, the client receives the rejection only after its handshake is complete.
    @Test(arguments: ["TLSv1_2", "TLSv1_3"]) func reportsRejectedClientCertificate(version: String) async throws {
        let client = try await ClientIdentity.make()
        let otherClient = try await ClientIdentity.make()
        let server = try await TLSServer.start(version: version, clientAuthority: client.certificate)
        defer { server.stop() }
        let engine = CurlEngine()
        var options = ConnectionOptions()
        options.certificateAuthorityFile = server.certificate
        options.clientCertificate = ClientCertificate(certificateFile: otherClient.certificate, keyFile: otherClient.key)
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
