import TransferCore

/// Supplies secrets by the names of their environment variables.
struct TestSecrets: CredentialProvider {
    var values: [String: String] = [:]

    func secret(for reference: CredentialReference) async throws -> Secret {
        guard case .environment(let name) = reference.source, let value = values[name] else {
            throw TransferError(.credentials, .credentialsUnavailable, "There is no such secret.")
        }
        return Secret(value)
    }
}
