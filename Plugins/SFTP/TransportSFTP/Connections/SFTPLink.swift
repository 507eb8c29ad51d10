package import Logging
package import TransferCore

/// A connection to a server, with one SFTP session.
package protocol SFTPLink: Sendable {
    /// The client of the SFTP session.
    var client: SFTPClient { get }

    /// Runs commands on the server over the same connection; nil if the link can't run commands.
    var commands: (any CommandRunner)? { get }

    /// The fingerprint of the server's host key in OpenSSH's format; nil for a link without SSH.
    var hostKeyFingerprint: String? { get }

    /// Closes the connection. Returns after it has closed.
    func close() async
}

/// Opens connections to endpoints.
package protocol SFTPConnector: Sendable {
    /// - Throws: A `TransferError`, or `CancellationError`.
    func connect(to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger) async throws -> any SFTPLink

    /// Releases shared resources. The pool calls this method after the last connection has closed.
    func shutdown() async
}

extension SFTPConnector {
    package func shutdown() async {}
}

/// A connection that ``SSHConnectionPool`` lends to the transfer of a file.
struct PooledConnection: Sendable {
    let client: SFTPClient
    let checksums: RemoteChecksums
    let hostKeyFingerprint: String?
    /// Whether no file has used the connection before, so the server has just accepted the login.
    var isNew = true
}

/// Lends additional connections for the transfer of one large file, preferably connections that no other file uses.
struct ConnectionLender: Sendable {
    /// Starts to open connections until `count` of them are unused or being opened, because this many tasks will call ``lend``.
    let prepare: @Sendable (_ count: Int) async -> Void
    /// Runs a closure with a connection.
    let lend: @Sendable (_ body: @Sendable (PooledConnection, SFTPFeatures) async throws -> Void) async throws -> Void
}
