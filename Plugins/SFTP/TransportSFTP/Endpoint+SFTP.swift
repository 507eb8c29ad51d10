public import TransferCore

extension Endpoint {
    /// Creates an endpoint for ``SFTPTransport``.
    ///
    /// - Parameters:
    ///   - address: `sftp://user@host:port/folder/`. The folder is absolute on the server. A folder that begins with `/~/` is relative to
    ///     the account's start folder, usually the home folder. The default user is the user of this process, and the default port is 22.
    ///   - credentials: A credential of the kind `password` is also the response to the server's prompts (keyboard-interactive). A
    ///     credential of the kind `keyPassphrase` decrypts the private keys in ``SFTPOptions/identities``, and one of the kind
    ///     `proxyPassword` is for the proxy. The transport rejects other kinds.
    ///   - options: The settings for keys, trusted servers, connections and files.
    public static func sftp(
        _ address: String, credentials: [CredentialReference], options: SFTPOptions = SFTPOptions()
    ) -> Endpoint {
        Endpoint(transport: .sftp, address: address, credentials: credentials, settings: options.settings)
    }

    /// Creates an endpoint for ``SFTPTransport``. Same as ``sftp(_:credentials:options:)-(_,[CredentialReference],_)``.
    public static func sftp(
        _ address: String, credentials: CredentialReference..., options: SFTPOptions = SFTPOptions()
    ) -> Endpoint {
        sftp(address, credentials: credentials, options: options)
    }
}

extension CredentialReference.Kind {
    /// The passphrase for the private keys in ``SFTPOptions/identities``.
    public static let keyPassphrase = Self(rawValue: "keyPassphrase")
}

extension CredentialReference {
    /// A passphrase for private keys.
    public static func keyPassphrase(_ source: Source) -> CredentialReference {
        CredentialReference(kind: .keyPassphrase, source: source)
    }
}
