import Foundation
import ProcessFixture

struct ClientIdentity: Sendable {
    static let passphrase = "open sesame"

    let certificate: String
    let key: String

    static func make(_ name: String, in folder: URL) async throws -> ClientIdentity {
        let identity = ClientIdentity(
            certificate: folder.appending(path: "\(name)-certificate.pem").path, key: folder.appending(path: "\(name)-key.pem").path)
        _ = try await openssl([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-passout", "pass:\(passphrase)", "-days", "2",
            "-subj", "/CN=\(name)", "-keyout",
            identity.key, "-out", identity.certificate,
        ])
        return identity
    }

    /// The endpoint settings that select this identity.
    var settings: [String: String] { ["clientCertificate": certificate, "clientKey": key] }
}

/// The pin of a certificate's public key (RFC 7469, section 2.4).
func publicKeyPin(ofCertificate file: String) async throws -> String {
    let key = try await openssl(["x509", "-in", file, "-pubkey", "-noout"])
    let bytes = try await openssl(["pkey", "-pubin", "-outform", "DER"], input: key)
    return try await openssl(["dgst", "-sha256", "-binary"], input: bytes).base64EncodedString()
}

private func openssl(_ arguments: [String], input: Data = Data()) async throws -> Data {
    struct Failed: Error {
        let arguments: [String]
    }
    return try await PythonProcess.runBlocking {
        let (status, output) = try StartedProgram.run("openssl", arguments, input: input)
        guard status == 0 else { throw Failed(arguments: arguments) }
        return output
    }
}
