public import TransferCore

extension Endpoint {
    /// An endpoint for ``TUSTransport``.
    ///
    /// - Parameters:
    ///   - address: The URL that uploads are created at, `https://…` or `http://…`. A user name in it goes with a credential of the kind
    ///     `password` (HTTP Basic).
    ///   - credentials: Sent with each request to the address's own scheme, host and port, and to no other.
    ///   - settings: Any of
    ///     - `caFile`: a file of certificates (PEM) to trust instead of the system's. `pinnedPublicKeys`: the only public keys that the server
    ///       may have, each as the base64 form of its SHA-256 (RFC 7469, section 2.4). `insecure`: `true` to trust whoever answers; warns in the
    ///       log at each request.
    ///     - `clientCertificate`, `clientKey`: files (PEM) that show the server who we are; a credential of the kind `clientKeyPassphrase`
    ///       deciphers the key.
    ///     - `proxy`: a URL, `direct` for none, or `environment` for what that says, which is the default. `proxyUser`, with a credential of the
    ///       kind `proxyPassword`; `proxyExceptions`: hosts that are reached without it.
    ///     - `httpVersion`: `1.1`, the default, or `2`. `addressFamily`: `any`, `ipv4` or `ipv6`. `interface`: the network interface, or the
    ///       local address, that connections leave from.
    ///     - `header.NAME`: the value of one more header for the address's origin and those of `origins`; not one that is a secret.
    ///     - `origins`: other origins, `scheme://host:port` with spaces or commas between them, where the server may keep uploads, and that
    ///       redirects may lead to. Credentials go there with an upload; a request that is redirected carries none.
    ///     - `singleRequestSize`: up to how many bytes a file goes along with the request that makes it, where the server takes that; 1 MiB if
    ///       not set, 0 for never.
    ///     - `chunkSize`: the most bytes of one `PATCH`; a session's own comes first. `chunkMultiple`: what all chunks but the last are a
    ///       multiple of.
    ///     - `parallelThreshold`: from how many bytes on a file moves in parts, where a session asks for more than one at once, and the server can put
    ///       them together or, for a download, knows ranges and names versions; 64 MiB if not set.
    ///     - `contentDisposition`: `true` to call a download what the server says (RFC 6266), reduced to one harmless name, unless the app named
    ///       it; `false` if not set.
    ///     - `methodOverride`: `true` to send `PATCH` as `POST` with `X-HTTP-Method-Override` from the beginning.
    public static func tus(_ address: String, credentials: [CredentialReference], settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: settings)
    }

    /// An endpoint for ``TUSTransport``; as ``tus(_:credentials:settings:)-(_,[CredentialReference],_)``.
    public static func tus(_ address: String, credentials: CredentialReference..., settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: settings)
    }
}
