import TransferCore

/// Supplies an empty secret for each reference.
struct NoCredentials: CredentialProvider {
    func secret(for reference: CredentialReference) async throws -> Secret { Secret("") }
}
