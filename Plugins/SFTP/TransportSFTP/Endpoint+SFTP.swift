public import TransferCore

extension Endpoint {
    /// An endpoint for ``SFTPTransport``.
    ///
    /// - Parameters:
    ///   - address: `sftp://user@host:port/folder/`. The folder is absolute on the server; a folder that begins with `/~/` is relative to
    ///     the account's start folder. The user defaults to this process's user, the port to 22.
    ///   - credentials: A credential of the kind `password` also answers the server's questions (keyboard-interactive). A credential of the
    ///     kind `keyPassphrase` decrypts the keys of the setting `identity`.
    ///   - settings: Any of
    ///     - `identity`: private key files, one per line, tried after the agent's keys. `agent`: the path of an agent's socket,
    ///       `environment` to use `SSH_AUTH_SOCK` (default), or `none`.
    ///     - `hostKey`: `strict` to trust only known servers (default); `accept-new` to also add unknown servers; or the fingerprint of the
    ///       server's only valid key, as `SHA256:…`.
    ///     - `knownHosts`: a known hosts file (sshd(8)) to use instead of the user's and the system's: `~/.ssh/known_hosts`,
    ///       `~/.ssh/known_hosts2`, `/etc/ssh/ssh_known_hosts` and `/etc/ssh/ssh_known_hosts2`.
    ///     - `maxConnections`: the maximum number of connections, 1 to 16 (default: 2).
    ///     - `proxyCommand`: a shell command whose input and output lead to the server, such as `ssh -W %h:%p jump.example.com`; `%h`, `%p`
    ///       and `%r` stand for the host, the port and the user (ssh_config(5), "ProxyCommand").
    ///     - `proxy`: a URL of the scheme `http`, `socks4`, `socks4a`, `socks5` or `socks5h`, or `environment` to use `ALL_PROXY`.
    ///       `proxyUser`: the user at the proxy, with a credential of the kind `proxyPassword`. `proxyExceptions`: hosts to reach without
    ///       the proxy.
    ///     - `addressFamily`: `any`, `ipv4` or `ipv6`. `interface`: the network interface, or the local address, that connections leave
    ///       from.
    ///     - `keepTimes`: `true` to set an uploaded file's modification time to that of its source. A downloaded file always gets the
    ///       server's.
    ///     - `keepModes`: `true` to copy a file's permissions, except setuid, setgid and sticky bits. If the server or the system refuses
    ///       them, the receipt has a warning. Without this setting, an uploaded file gets the server's permissions for new files, but none
    ///       that its source lacks. Until it is complete, only the account can read it.
    ///     - `parallelThreshold`: the minimum size in bytes of a file that is transferred over several connections in parallel, if a session
    ///       asks for that (`AttemptOptions.parallel`) and `maxConnections` allows it (default: 64 MiB).
    ///     - `partFiles`: `false` to write an uploaded file under its final name from the start, instead of a part file that is renamed
    ///       when complete. This saves one round trip per file, which matters for small files on distant servers. Incomplete files are then
    ///       visible, also after the session was cancelled or removed, a replaced file is lost with the first byte, and a link of that name is followed. Only for sessions with the
    ///       overwrite policy `always`; the others depend on what exists.
    ///     - `sync`: `false` to treat a file as sent when the server has it in memory, without asking it to sync (`fsync@openssh.com`). A
    ///       server that loses power can then lose files.
    ///     - `allowSHA1`: `true` to accept host keys and key exchanges with SHA-1, for old servers.
    public static func sftp(
        _ address: String, credentials: [CredentialReference] = [], settings: [String: String] = [:]
    ) -> Endpoint {
        Endpoint(transport: .sftp, address: address, credentials: credentials, settings: settings)
    }

    /// An endpoint for ``SFTPTransport``; as ``sftp(_:credentials:settings:)``, with one credential.
    public static func sftp(
        _ address: String, credentials: CredentialReference, settings: [String: String] = [:]
    ) -> Endpoint {
        sftp(address, credentials: [credentials], settings: settings)
    }
}

extension CredentialReference.Kind {
    /// The passphrase of the private keys in the setting `identity` of ``SFTPTransport``.
    public static let keyPassphrase = Self(rawValue: "keyPassphrase")
}

extension CredentialReference {
    /// A passphrase of private keys.
    public static func keyPassphrase(_ source: Source) -> CredentialReference {
        CredentialReference(kind: .keyPassphrase, source: source)
    }
}
