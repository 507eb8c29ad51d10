package import CurlEngine
import Foundation
package import TransferCore

/// Reads the secrets of an endpoint's credentials, and makes the headers that contain them.
package struct EndpointCredentials {
    private let references: [CredentialReference]
    private let userName: String?
    private let origin: Origin
    private let provider: any CredentialProvider

    private static let connectionKinds: Set<CredentialReference.Kind> = [.clientKeyPassphrase, .proxyPassword]

    package init(references: [CredentialReference], userName: String?, origin: Origin, provider: any CredentialProvider) {
        self.references = references
        self.userName = userName
        self.origin = origin
        self.provider = provider
    }

    /// Rejects an endpoint that has a password but no user name in its address.
    ///
    /// - Throws: A ``TransferError`` with the code `invalidEndpoint`.
    package static func check(_ endpoint: Endpoint) throws(TransferError) {
        let url = try endpoint.validate()
        guard url.user() == nil, endpoint.credentials.contains(where: { $0.kind == .password }) else { return }
        throw TransferError(
            .permanent, .invalidEndpoint,
            "The endpoint \(endpoint.location) has a password but no user name. Add the user name to its address: \(url.scheme ?? "https")://user@\(url.host() ?? "host")/…"
        )
    }

    /// Whether any credential is for the server. A client-key passphrase or a proxy password is not for the server.
    package var includeServerCredentials: Bool { references.contains { !Self.connectionKinds.contains($0.kind) } }

    /// The warning to log before credentials are sent without encryption. Nil if the connection is encrypted, the server is this machine,
    /// or there are no credentials.
    package var cleartextWarning: String? {
        guard includeServerCredentials, origin.scheme == "http", !origin.isLoopback else { return nil }
        return
            "The credentials for \(origin) are sent without encryption, so anyone on the network path can read them. Write https in the address."
    }

    /// Reads the client-key passphrase and the proxy password. Each is nil if the endpoint has no such credential.
    ///
    /// - Throws: The provider's error.
    package func connectionSecrets() async throws -> (passphrase: Secret?, proxyPassword: Secret?) {
        var secrets: (passphrase: Secret?, proxyPassword: Secret?) = (nil, nil)
        for reference in references {
            switch reference.kind {
            case .clientKeyPassphrase: secrets.passphrase = try await provider.secret(for: reference)
            case .proxyPassword: secrets.proxyPassword = try await provider.secret(for: reference)
            default: continue
            }
        }
        return secrets
    }

    /// Reads the secrets for the server, and returns the headers for them. Each call reads the secrets again, because they may have been replaced.
    ///
    /// - Throws: The provider's error, or a `TransferError` if a secret contains a control character or can't be sent as a header.
    package func headers() async throws -> [HTTPHeaders.Field] {
        var fields = HTTPHeaders()
        for reference in references where !Self.connectionKinds.contains(reference.kind) {
            let secret = try await provider.secret(for: reference).reveal()
            guard !secret.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 }) else {
                throw TransferError(
                    .credentials, .credentialsUnavailable,
                    "The secret of the kind \(reference.kind.rawValue) for \(origin) contains a line break or a control character; remove it."
                )
            }
            switch reference.kind {
            case .bearerToken:
                fields.append("Authorization", "Bearer \(secret)")
            case .password:
                guard let userName else {
                    throw TransferError(
                        .permanent, .invalidEndpoint,
                        "The endpoint \(origin) has a password but no user name. Write the address as \(origin.scheme)://user@host/….")
                }
                fields.append("Authorization", "Basic \(Data("\(userName):\(secret)".utf8).base64EncodedString())")
            case .header:
                guard let name = reference.name else {
                    throw TransferError(.permanent, .invalidEndpoint, "A header credential of \(origin) does not name its header.")
                }
                fields.append(name, secret)
            default:
                throw TransferError(
                    .unsupported, .unsupported, "The endpoint \(origin) can't use a credential of the kind \(reference.kind.rawValue)."
                )
            }
        }
        return Array(fields)
    }
}
