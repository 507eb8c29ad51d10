public import TransferCore

extension Endpoint {
    /// Creates an endpoint for ``TUSTransport``.
    ///
    /// - Parameters:
    ///   - address: The URL for creating uploads, `https://…` or `http://…`. Set a user name in the URL to authenticate with a credential of the kind
    ///     `password` (HTTP Basic).
    ///   - credentials: Sent with requests to the origin (scheme, host and port) of the address and to the trusted origins of the options.
    ///     After a redirect to another origin, a request carries no credentials, even if that origin is trusted.
    ///   - options: The settings of requests, chunks and connections.
    public static func tus(_ address: String, credentials: [CredentialReference], options: TUSOptions = TUSOptions()) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: options.settings)
    }

    /// Creates an endpoint for ``TUSTransport``. Same as ``tus(_:credentials:options:)-(_,[CredentialReference],_)``.
    public static func tus(_ address: String, credentials: CredentialReference..., options: TUSOptions = TUSOptions()) -> Endpoint {
        tus(address, credentials: credentials, options: options)
    }
}
