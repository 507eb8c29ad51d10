public import TransferCore

extension Endpoint {
    /// An endpoint for ``HTTPTransport``.
    ///
    /// - Parameters:
    ///   - address: A URL whose scheme also names the upload method:
    ///     - `https+put`, `http+put`: each file is the content of a `PUT` request (RFC 9110, section 9.3.4), for object stores and WebDAV
    ///       servers;
    ///     - `https+form`, `http+form`: each file is a part of a form, in a `POST` request of the type `multipart/form-data` (RFC 7578);
    ///     - `https+get`, `http+get`: for downloads only. The other schemes allow downloads, too.
    ///
    ///     The placeholder `{name}` stands for the last component of the remote name, `{path}` for the whole remote name, and
    ///     `{transfer}` for an ID that stays the same when a transfer is repeated; the query can hold a signature for many names. Any other
    ///     brace is rejected; write `%7B` and `%7D` for literal braces. An address without `{name}` or `{path}` is a folder, and the remote
    ///     name is appended; but forms go to the address as it is. A user name in the address goes with a credential of the kind `password`
    ///     (HTTP Basic).
    ///
    ///     An item's own `uploadURL`, an `https` or `http` URL that was signed for one file, replaces the address. Both are stored with
    ///     their signatures, in a folder that only its user can read. Use credentials, or the transport's header hook, for secrets that
    ///     must not be stored.
    ///   - credentials: Sent with each request to the address's own scheme, host and port and to the trusted origins of the options, and to no
    ///     other.
    ///   - options: The forms, the files and the requests, and how the server is reached.
    public static func http(_ address: String, credentials: [CredentialReference], options: HTTPOptions = HTTPOptions()) -> Endpoint {
        Endpoint(transport: .http, address: address, credentials: credentials, settings: options.settings)
    }

    /// An endpoint for ``HTTPTransport``; as ``http(_:credentials:options:)-(_,[CredentialReference],_)``.
    public static func http(_ address: String, credentials: CredentialReference..., options: HTTPOptions = HTTPOptions()) -> Endpoint {
        http(address, credentials: credentials, options: options)
    }
}
