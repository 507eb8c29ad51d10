import Foundation
import TransportSupport

/// A client certificate for a test. Its key is stored both unencrypted and encrypted.
final class ClientIdentity: Sendable {
    static let passphrase = "open sesame"

    let certificate: String
    let key: String
    let encryptedKey: String
    private let folder: URL

    static func make() async throws -> ClientIdentity {
        try await WorkerThreads(limit: 1).run { try ClientIdentity() }
    }

    private init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "transferkit-client-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        certificate = folder.appending(path: "certificate.pem").path
        key = folder.appending(path: "key.pem").path
        encryptedKey = folder.appending(path: "encrypted.pem").path
        _ = try openssl([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=the client",
            "-keyout", key, "-out", certificate,
        ])
        _ = try openssl(["pkey", "-aes128", "-passout", "pass:\(Self.passphrase)", "-in", key, "-out", encryptedKey])
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }
}
