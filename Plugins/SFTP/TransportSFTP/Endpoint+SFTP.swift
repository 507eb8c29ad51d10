public import TransferCore

extension Endpoint {
    /// An endpoint for ``SFTPTransport``.
    ///
    /// - Parameters:
    ///   - address: `sftp://user@host:port/folder/`. The folder is absolute at the server; one that begins with `/~/` is below the one that the
    ///     account begins in. Without a user, it is who runs this process; without a port, 22.
    ///   - credentials: A credential of the kind `password` also answers the server's questions (keyboard-interactive); one of the kind
    ///     `keyPassphrase` deciphers the keys of the setting `identity`.
    ///   - settings: Any of
    ///     - `identity`: files with private keys, one a line, tried after those of the agent. `agent`: the path of an agent's socket,
    ///       `environment` for what `SSH_AUTH_SOCK` says, which is the default, or `none`.
    ///     - `hostKey`: `strict`, the default, to trust only servers that are known; `accept-new` to note servers that are not; or the
    ///       fingerprint of the only key that the server may have, as `SHA256:…`.
    ///     - `knownHosts`: a file of known servers (sshd(8)) instead of the user's and the system's, which are `~/.ssh/known_hosts`,
    ///       `~/.ssh/known_hosts2`, `/etc/ssh/ssh_known_hosts` and `/etc/ssh/ssh_known_hosts2`.
    ///     - `maxConnections`: how many connections there may be, 1 to 16; 2 without it.
    ///     - `proxyCommand`: a command of the shell whose input and output lead to the server, such as `ssh -W %h:%p jump.example.com`; `%h`, `%p`
    ///       and `%r` stand for the host, the port and the user (ssh_config(5), "ProxyCommand").
    ///     - `proxy`: a URL of the scheme `http`, `socks4`, `socks4a`, `socks5` or `socks5h`, or `environment` for what `ALL_PROXY` says.
    ///       `proxyUser`, with a credential of the kind `proxyPassword`; `proxyExceptions`: hosts that are reached without it.
    ///     - `addressFamily`: `any`, `ipv4` or `ipv6`. `interface`: the network interface, or the local address, that connections leave from.
    ///     - `keepTimes`: `true` to give an uploaded file the time of its last change here; a downloaded one always gets that of the server.
    ///     - `keepModes`: `true` to give a file the permissions that it has at the other end, but none that a program would run by as another
    ///       user. If the server or the system does not allow that, the receipt has a warning. Without it, an uploaded file gets the permissions of
    ///       a new file at the server, but none that its source lacks. Until it is complete, only the account can read it.
    ///     - `parallelThreshold`: from how many bytes on a file is sent in ranges, or received in blocks, over several connections at once,
    ///       where a session asks for that (`AttemptOptions.parallel`) and `maxConnections` lets it; 64 MiB without it.
    ///     - `partFiles`: `false` to write an uploaded file under its own name from the start, and not beside it until it is complete: a round trip
    ///       less for each file, which counts where they are small and the server is far. Whoever looks there sees files that are not complete, one
    ///       that is replaced is lost with the first byte, and a link of that name is followed. Only for sessions with the overwrite policy `always`:
    ///       the others judge by what is there.
    ///     - `sync`: `false` to take a file for sent when the server has it in memory, and not ask for more (`fsync@openssh.com`): a server that
    ///       loses its power may lose files that arrived.
    ///     - `allowSHA1`: `true` to let old servers use a host key or key exchange with SHA-1.
    public static func sftp(
        _ address: String, credentials: [CredentialReference] = [], settings: [String: String] = [:]
    ) -> Endpoint {
        Endpoint(transport: .sftp, address: address, credentials: credentials, settings: settings)
    }

    /// As ``sftp(_:credentials:settings:)``, with one credential.
    public static func sftp(
        _ address: String, credentials: CredentialReference, settings: [String: String] = [:]
    ) -> Endpoint {
        sftp(address, credentials: [credentials], settings: settings)
    }
}

extension CredentialReference.Kind {
    /// What the private keys of the setting `identity` of ``SFTPTransport`` are encrypted with.
    public static let keyPassphrase = Self(rawValue: "keyPassphrase")
}

extension CredentialReference {
    /// A passphrase of private keys.
    public static func keyPassphrase(_ source: Source) -> CredentialReference {
        CredentialReference(kind: .keyPassphrase, source: source)
    }
}
