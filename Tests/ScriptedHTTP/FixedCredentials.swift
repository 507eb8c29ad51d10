package import TransferCore

/// A credential provider with fixed secrets, by the names of environment variables.
package struct FixedCredentials: CredentialProvider {
    package var secrets: [String: String]

    package init(secrets: [String: String] = [:]) {
        self.secrets = secrets
    }

    /// Returns the secret for the variable that the reference names. The process's environment is not used.
    package func secret(for reference: CredentialReference) async throws -> Secret {
        guard case .environment(let name) = reference.source, let value = secrets[name] else {
            throw TransferError(.credentials, .credentialsUnavailable, "There is no such secret.")
        }
        return Secret(value)
    }
}
