public import TransferCore

extension Endpoint {
    /// An endpoint for ``TUSTransport``.
    ///
    /// - Parameters:
    ///   - address: The URL that uploads are created at, `https://…` or `http://…`. A user name in it goes with a credential of the kind
    ///     `password` (HTTP Basic).
    ///   - credentials: Sent with each request to the address's own scheme, host and port, and to no other.
    ///   - settings: `caFile`, a file of certificates (PEM) to trust instead of the system's; and `header.NAME`, the value of one more header.
    public static func tus(_ address: String, credentials: [CredentialReference], settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: settings)
    }

    /// An endpoint for ``TUSTransport``; as ``tus(_:credentials:settings:)-(_,[CredentialReference],_)``.
    public static func tus(_ address: String, credentials: CredentialReference..., settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: settings)
    }
}
