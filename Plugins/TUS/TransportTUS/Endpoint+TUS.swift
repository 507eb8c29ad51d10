public import TransferCore

extension Endpoint {
    /// An endpoint for ``TUSTransport``.
    ///
    /// - Parameters:
    ///   - address: The URL that uploads are created at, `https://…` or `http://…`. A user name in it goes with a credential of the kind
    ///     `password` (HTTP Basic).
    ///   - credentials: Sent with each request to the address's own scheme, host and port and to the trusted origins of the options, and to no
    ///     other.
    ///   - options: The requests and chunks, and how the server is reached.
    public static func tus(_ address: String, credentials: [CredentialReference], options: TUSOptions = TUSOptions()) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: options.settings)
    }

    /// An endpoint for ``TUSTransport``; as ``tus(_:credentials:options:)-(_,[CredentialReference],_)``.
    public static func tus(_ address: String, credentials: CredentialReference..., options: TUSOptions = TUSOptions()) -> Endpoint {
        tus(address, credentials: credentials, options: options)
    }
}
