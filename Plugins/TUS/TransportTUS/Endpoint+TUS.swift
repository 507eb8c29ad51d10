public import TransferCore

extension Endpoint {
    /// An endpoint for ``TUSTransport``.
    ///
    /// - Parameters:
    ///   - address: The URL that uploads are created at, `https://…` or `http://…`. A user name in it goes with a credential of the kind
    ///     `password` (HTTP Basic).
    ///   - credentials: Sent with each request to the address's own scheme, host and port, and to no other.
    ///   - settings: Any of
    ///     - `caFile`: a file of certificates (PEM) to trust instead of the system's.
    ///     - `header.NAME`: the value of one more header; not one that is a secret.
    ///     - `origins`: other origins, `scheme://host:port` with spaces or commas between them, that credentials may be sent to when an upload
    ///       is there, and that redirects may lead to.
    ///     - `singleRequestSize`: up to how many bytes a file goes along with the request that makes it, where the server takes that; 1 MiB if
    ///       not set, 0 for never.
    ///     - `chunkSize`: the most bytes of one `PATCH`; a session's own comes first. `chunkMultiple`: what all chunks but the last are a
    ///       multiple of.
    ///     - `parallelThreshold`: from how many bytes on a file is sent in parts, where a session asks for more than one at once and the server
    ///       can put them together; 64 MiB if not set.
    ///     - `methodOverride`: `true` to send `PATCH` as `POST` with `X-HTTP-Method-Override` from the beginning.
    public static func tus(_ address: String, credentials: [CredentialReference], settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: settings)
    }

    /// An endpoint for ``TUSTransport``; as ``tus(_:credentials:settings:)-(_,[CredentialReference],_)``.
    public static func tus(_ address: String, credentials: CredentialReference..., settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: settings)
    }
}
