package import TransferCore

/// Secrets by the name of their environment variable.
package struct FixedCredentials: CredentialProvider {
    package var secrets: [String: String]

    package init(secrets: [String: String] = [:]) {
        self.secrets = secrets
    }

    /// Returns the secret with this variable name. The environment need not contain the variable.
    package func secret(for reference: CredentialReference) async throws -> Secret {
        guard case .environment(let name) = reference.source, let value = secrets[name] else {
            throw TransferError(.credentials, .credentialsUnavailable, "There is no such secret.")
        }
        return Secret(value)
    }
}
