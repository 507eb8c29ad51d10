package import TransferCore

/// A credential provider that returns fixed secrets. The key of each secret is the name of an environment variable.
package struct FixedCredentials: CredentialProvider {
    package var secrets: [String: String]

    package init(secrets: [String: String] = [:]) {
        self.secrets = secrets
    }

    /// Returns the secret for the environment variable that the reference names. Ignores the environment of the process.
    package func secret(for reference: CredentialReference) async throws -> Secret {
        guard case .environment(let name) = reference.source, let value = secrets[name] else {
            throw TransferError(.credentials, .credentialsUnavailable, "There is no such secret.")
        }
        return Secret(value)
    }
}
