import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransferWeb

/// A server with a certificate, and curl as its client.
@Suite struct TLSTests {
    @Test func `the page has an HTTPS URL, a secure cookie and an HTTPS origin`() async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("transferkit-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        let (certificate, key) = (folder.appending("certificate.pem"), folder.appending("key.pem"))
        let made = try await BlockingIO.run {
            try StartedProgram.run(
                "openssl",
                [
                    "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test", "-addext",
                    "subjectAltName=DNS:queue.example.com,IP:127.0.0.1", "-keyout", key.string, "-out", certificate.string,
                ])
        }
        try #require(made.status == 0, "\(String(decoding: made.output, as: UTF8.self))")
        try await WebFixture.with {
            $0.certificate = WebServerOptions.Certificate(chain: certificate, key: key)
            $0.hostNames = ["queue.example.com"]
        } _: { fixture in
            let (host, port) = ("queue.example.com", fixture.port)
            let jar = folder.appending("jar").string
            /// Sends a request. Returns curl's exit status, and the response with its headers (nil if there was none).
            func curl(_ path: String, _ words: String..., scheme: String = "https") async throws -> (status: Int32, reply: WebReply?) {
                let arguments = [
                    "--silent", "--include", "--http1.1", "--cacert", certificate.string, "--cookie", jar, "--cookie-jar", jar, "--resolve",
                    "\(host):\(port):127.0.0.1", "\(scheme)://\(host):\(port)\(path)",
                ]
                let result = try await BlockingIO.run { try StartedProgram.run("curl", arguments + words) }
                return (result.status, try? WebReply(result.output))
            }
            #expect(fixture.url.hasPrefix("https://\(host):\(port)/login?token="), "\(fixture.url)")
            let login = try await curl("/login?token=\(fixture.token())")
            let cookie = try #require(login.reply?.headers["set-cookie"], "\(login)")
            #expect(
                cookie.hasPrefix("__Host-transferq-\(port)=") && cookie.contains("; Secure") && cookie.contains("; Path=/"), "\(cookie)")
            let page = try await curl("/")
            #expect(page.reply?.status == 200 && page.reply?.body.contains("data-access=\"write\"") == true)
            let json = ["--header", "Content-Type: application/json", "--data", "{}", "--header"]
            let own = try await curl("/api/v1/queue/drain", json[0], json[1], json[2], json[3], json[4], "Origin: https://\(host):\(port)")
            #expect(own.reply?.status == 200, "\(own)")
            let plain = try await curl("/api/v1/queue/drain", json[0], json[1], json[2], json[3], json[4], "Origin: http://\(host):\(port)")
            #expect(plain.reply?.status == 403 && plain.reply?.code == "foreignOrigin", "\(plain)")
            #expect(try await curl("/", scheme: "http").reply?.status != 200)
            // Without the certificate in its list of authorities, curl rejects the server.
            #expect(try await curl("/", "--cacert", "/dev/null").status != 0)
        }
    }
}
