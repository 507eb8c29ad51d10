public import TransferCore

extension Endpoint {
    /// Creates an endpoint for ``HTTPTransport``.
    ///
    /// - Parameters:
    ///   - address: A URL whose scheme also selects the upload method:
    ///     - `https+put`, `http+put`: each file is the content of a `PUT` request (RFC 9110, section 9.3.4), for object stores and WebDAV
    ///       servers;
    ///     - `https+post`, `http+post`: each file is the content of a `POST` request (RFC 9110, section 9.3.3);
    ///     - `https+form`, `http+form`: each file is a part of a form, in a `POST` request of the type `multipart/form-data` (RFC 7578);
    ///     - `https+get`, `http+get`: for downloads, and for sessions that set ``HTTPOptions/upload``. All schemes allow downloads.
    ///
    ///     The transport replaces placeholders: `{name}` with the last component of the remote name, `{path}` with the whole remote name, and
    ///     `{transfer}` with an ID that stays the same in all retries of a transfer. Only a file that restarts after a failed verification or
    ///     a change of its content gets a new ID. The transport rejects other braces; write `%7B` and `%7D` for literal braces. Without
    ///     `{name}` or `{path}`, the address is a folder, and the transport appends the remote name, except for `POST` requests. The query
    ///     may contain a signature that is valid for many names. Set a user name in the address to authenticate with a credential of the kind
    ///     `password` (HTTP Basic).
    ///
    ///     The `uploadURL` of an item, an `https` or `http` URL that was signed for one file, replaces the address. The queue stores the
    ///     address and the `uploadURL` with their signatures in its storage folder, which only its user can read. For secrets that must not
    ///     be stored, use credentials or the transport's header hook.
    ///   - credentials: Sent with each request to the origin (scheme, host and port) of the address and to the trusted origins of the
    ///     options. Requests to other origins carry no credentials.
    ///   - options: The settings of forms, files, requests and connections.
    public static func http(_ address: String, credentials: [CredentialReference], options: HTTPOptions = HTTPOptions()) -> Endpoint {
        Endpoint(transport: .http, address: address, credentials: credentials, settings: options.settings)
    }

    /// Creates an endpoint for ``HTTPTransport``. Same as ``http(_:credentials:options:)-(_,[CredentialReference],_)``.
    public static func http(_ address: String, credentials: CredentialReference..., options: HTTPOptions = HTTPOptions()) -> Endpoint {
        http(address, credentials: credentials, options: options)
    }
}
