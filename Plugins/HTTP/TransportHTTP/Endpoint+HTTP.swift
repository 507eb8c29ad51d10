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
    ///   - credentials: Sent with each request to the address's own scheme, host and port and to those in `origins`, and to no other.
    ///   - settings: Any of
    ///     - `field.NAME`: the value of an additional text field of the form, with `{name}`, `{path}` and `{transfer}` replaced unencoded.
    ///       A session's metadata are text fields, too, and take precedence over a setting of the same name. The file is the last part.
    ///     - `file.NAME`: the local path of an additional file in the form, in a field of this name; several are separated by line breaks.
    ///       `{name}`, `{path}` and `{transfer}` are replaced, and `{source}` by the path of the uploaded file: so `{source}.xmp` lies
    ///       beside each. Such a file is sent with each attempt, before the file itself, under the last component of its path, and does not
    ///       count in any figure. If it is missing or changes while it is sent, the attempt fails.
    ///     - `fileField`: the name of the form's field for the file (default: `file`).
    ///     - `contentType`: the media type of all files (default: derived from the name's extension). A session's header `Content-Type`
    ///       takes precedence over both.
    ///     - `metadataPrefix`: the prefix that makes headers of a session's metadata in a `PUT`, for example `x-amz-meta-`; without it, a
    ///       session with metadata is rejected.
    ///     - `acceptedStatuses`: statuses from 300 to 399 that mean success, such as `302` of a form handler that then shows a page; 303 of
    ///       a form always does (RFC 9110, section 15.4.4). 307 and 308 with a trusted target are followed first.
    ///     - `parallelThreshold`: the minimum size in bytes of a file that is downloaded in several segments, if a session asks for that and the
    ///       server supports ranges and names versions (default: 64 MiB).
    ///     - `contentDisposition`: `true` to use the server's name for a download (RFC 6266), reduced to one safe name, unless the app
    ///       names it (default: `false`).
    ///     - `transferTimeout`: the maximum number of seconds for one attempt at a file (default: no limit). How long a transfer can stall
    ///       is the session's `stallTimeout` and `responseTimeout`.
    ///     - `origins`: other origins, `scheme://host:port`, separated by spaces or commas, that credentials and headers are sent to for an
    ///       item's own URL, and that redirects may lead to.
    ///     - `header.NAME`: the value of an additional header for the address's origin and those in `origins`; not for secrets.
    ///     - `caFile`, `pinnedPublicKeys`, `insecure`, `clientCertificate`, `clientKey`, `proxy`, `proxyUser`, `proxyExceptions`,
    ///       `httpVersion`, `addressFamily`, `interface`: as for the tus transport.
    ///
    ///     A session can set some of these itself (``TransferCore/AttemptOptions/settings``), which take precedence:
    ///     `acceptedStatuses`, `contentDisposition`, `contentType`, `field.NAME`, `file.NAME`, `fileField`, `metadataPrefix`,
    ///     `parallelThreshold`, `transferTimeout`; and in addition
    ///     - `upload`: `put` or `form`, which takes precedence over the address's method;
    ///     - `uploadURL.NAME`: the URL for the file with this remote name; a session with such settings has one for each of its files. An
    ///       item's own `uploadURL` takes precedence.
    ///
    ///     A setting of a session that has no effect on its files is rejected. <doc:PlainHTTP> has all of this in tables.
    public static func http(_ address: String, credentials: [CredentialReference], settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .http, address: address, credentials: credentials, settings: settings)
    }

    /// An endpoint for ``HTTPTransport``; as ``http(_:credentials:settings:)-(_,[CredentialReference],_)``.
    public static func http(_ address: String, credentials: CredentialReference..., settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .http, address: address, credentials: credentials, settings: settings)
    }
}
