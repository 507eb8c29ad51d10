public import TransferCore

extension Endpoint {
    /// An endpoint for ``HTTPTransport``.
    ///
    /// - Parameters:
    ///   - address: A URL whose scheme also says how files are uploaded:
    ///     - `https+put`, `http+put`: each is the content of a `PUT` request (RFC 9110, section 9.3.4), as object stores and WebDAV servers want
    ///       it;
    ///     - `https+form`, `http+form`: each is a part of a form, in a `POST` request of the type `multipart/form-data` (RFC 7578);
    ///     - `https+get`, `http+get`: they are not, as the server is there to download from. With the others, files can be downloaded too.
    ///
    ///     The text `{name}` in it stands for the last component of the remote name, `{path}` for all of it, and `{transfer}` for an ID that
    ///     stays the same when a transfer is repeated; so a query that carries a signature for many names can go along. Any other brace is refused;
    ///     `%7B` and `%7D` are braces themselves. An address without
    ///     `{name}` or `{path}` is that of a folder, which the remote name is put behind; but forms go to the address as it is. A user name in it
    ///     goes with a credential of the kind `password` (HTTP Basic).
    ///
    ///     An item's own `uploadURL`, an `https` or `http` URL that was signed for one file, takes the address's place.
    ///     Both are stored as they are, signatures too, in a folder that only its user can read; what must not be stored is for credentials, or
    ///     for the transport's hook for headers.
    ///   - credentials: Sent with each request to the address's own scheme, host and port and to those that `origins` lists, and to no other.
    ///   - settings: Any of
    ///     - `field.NAME`: the value of one more text field of the form, with `{name}`, `{path}` and `{transfer}` replaced as they are. A session's
    ///       metadata are text fields too, and go before a setting of the same name. The file is the last part.
    ///     - `file.NAME`: the path on this machine of a file that goes along in the form, in a field of this name; several with line breaks
    ///       between them. `{name}`, `{path}` and `{transfer}` are replaced, and `{source}` by the path of the file itself: so
    ///       `{source}.xmp` lies beside each. Such a file is sent with each attempt, before the file itself, and not counted in any figure. It is
    ///       named by the last component of its path. If it is missing or changes while it is sent, the file's attempt fails as for its own sake.
    ///     - `fileField`: the name of the form's field for the file; `file` if not set.
    ///     - `contentType`: the media type of all files; if not set, it follows from the name's extension. A session's header `Content-Type`
    ///       goes before both.
    ///     - `metadataPrefix`: what is put before a session's metadata to make them headers of a `PUT`, for example `x-amz-meta-`; without it,
    ///       a session with metadata is refused.
    ///     - `acceptedStatuses`: statuses from 300 to 399 that mean that the file has arrived, such as `302` of a form handler that then
    ///       shows a page; 303 of one (RFC 9110, section 15.4.4) always does. 307 and 308 that lead where redirects may are followed first.
    ///     - `parallelThreshold`: from how many bytes on a file is received in several parts at once, where a session asks for that and the server
    ///       knows ranges and names versions; 64 MiB if not set.
    ///     - `contentDisposition`: `true` to call a download what the server says (RFC 6266), reduced to one harmless name, unless the app named
    ///       it; `false` if not set.
    ///     - `transferTimeout`: how many seconds one attempt at a file may take in all; no limit if not set. How long a transfer may
    ///       stand still is the session's `stallTimeout` and `responseTimeout`.
    ///     - `origins`: other origins, `scheme://host:port` with spaces or commas between them, that credentials and headers may be sent to for
    ///       an item's own URL, and that redirects may lead to.
    ///     - `header.NAME`: the value of one more header for the address's origin and those of `origins`; not one that is a secret.
    ///     - `caFile`, `pinnedPublicKeys`, `insecure`, `clientCertificate`, `clientKey`, `proxy`, `proxyUser`, `proxyExceptions`, `httpVersion`,
    ///       `addressFamily`, `interface`: as the tus transport has them.
    ///
    ///     A session can have some of its own (``TransferCore/AttemptOptions/settings``), which go before these: `acceptedStatuses`,
    ///     `contentDisposition`, `contentType`, `field.NAME`, `file.NAME`, `fileField`, `metadataPrefix`, `parallelThreshold`, `transferTimeout`;
    ///     and besides
    ///     - `upload`: `put` or `form`, which goes before the way that the address names;
    ///     - `uploadURL.NAME`: the URL that the file with this remote name goes to; a session with such settings has one for each of its files. An
    ///       item's own `uploadURL` goes before it.
    ///
    ///     A setting of a session that has no effect on its files is refused. <doc:PlainHTTP> has all of this in tables.
    public static func http(_ address: String, credentials: [CredentialReference], settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .http, address: address, credentials: credentials, settings: settings)
    }

    /// An endpoint for ``HTTPTransport``; as ``http(_:credentials:settings:)-(_,[CredentialReference],_)``.
    public static func http(_ address: String, credentials: CredentialReference..., settings: [String: String] = [:]) -> Endpoint {
        Endpoint(transport: .http, address: address, credentials: credentials, settings: settings)
    }
}
