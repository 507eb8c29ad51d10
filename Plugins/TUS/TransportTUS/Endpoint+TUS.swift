public import TransferCore

extension Endpoint {
    /// An endpoint for ``TUSTransport``.
    ///
    /// - Parameters:
    ///   - address: The URL that uploads are created at, `https://…` or `http://…`. A user name in it goes with a credential of the kind
    ///     `password` (HTTP Basic).
    ///   - credentials: Sent with each request to the address's own scheme, host and port and to those in `origins`, and to no other.
    ///   - settings: Any of
    ///     - `caFile`: a file of certificates (PEM) to trust instead of the system's. `pinnedPublicKeys`: the server's only valid public
    ///       keys, each as its SHA-256 in base64 (RFC 7469, section 2.4). `insecure`: `true` to trust any server; logs a warning
    ///       for each request.
    ///     - `clientCertificate`, `clientKey`: files (PEM) that authenticate the client; a credential of the kind `clientKeyPassphrase`
    ///       decrypts the key.
    ///     - `proxy`: a URL, `direct` for none, or `environment` for the environment's proxy (default). `proxyUser`: the user at the proxy,
    ///       with a credential of the kind `proxyPassword`. `proxyExceptions`: hosts to reach without the proxy.
    ///     - `httpVersion`: `1.1` (default) or `2`. `addressFamily`: `any`, `ipv4` or `ipv6`. `interface`: the network interface, or the
    ///       local address, that connections leave from.
    ///     - `header.NAME`: the value of an additional header for the address's origin and those in `origins`; not for secrets.
    ///     - `origins`: other origins, `scheme://host:port`, separated by spaces or commas, where the server may keep uploads, and that
    ///       redirects may lead to. Credentials are sent there with an upload; a redirected request carries none.
    ///     - `singleRequestSize`: the maximum size in bytes of a file that is sent with the request that creates the upload, if the server
    ///       supports that (default: 1 MiB; 0 for never).
    ///     - `chunkSize`: the maximum number of bytes of one `PATCH`; a session's own takes precedence. `chunkMultiple`: all chunks but the
    ///       last are a multiple of this.
    ///     - `parallelThreshold`: the minimum size in bytes of a file that is transferred in several segments, if a session asks for that, and
    ///       the server supports concatenation or, for a download, supports ranges and names versions (default: 64 MiB).
    ///     - `contentDisposition`: `true` to use the server's name for a download (RFC 6266), reduced to one safe name, unless the app
    ///       names it (default: `false`).
    ///     - `methodOverride`: `true` to send `PATCH` as `POST` with `X-HTTP-Method-Override` from the start.
    public static func tus(_ address: String, credentials: [CredentialReference], settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: settings)
    }

    /// An endpoint for ``TUSTransport``; as ``tus(_:credentials:settings:)-(_,[CredentialReference],_)``.
    public static func tus(_ address: String, credentials: CredentialReference..., settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .tus, address: address, credentials: credentials, settings: settings)
    }
}
