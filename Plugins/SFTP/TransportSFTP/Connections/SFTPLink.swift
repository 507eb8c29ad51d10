package import Logging
package import TransferCore

/// A connection that carries an SFTP conversation.
package protocol SFTPLink: Sendable {
    /// The conversation.
    var client: SFTPClient { get }

    /// Runs commands over the same connection; nil if that is not possible.
    var commands: (any CommandRunner)? { get }

    /// The fingerprint of the server's host key, as OpenSSH writes it; nil for a link without SSH.
    var hostKeyFingerprint: String? { get }

    /// Closes the link, and returns when all of it has ended.
    func close() async
}

/// Opens connections to endpoints.
package protocol SFTPConnector: Sendable {
    /// Connects and authenticates.
    ///
    /// - Throws: A `TransferError` of the class `unreachable`, `trust`, `credentials` or `transient`; `CancellationError`.
    func connect(to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger) async throws -> any SFTPLink

    /// Ends shared resources, after the last connection.
    func shutdown() async
}

extension SFTPConnector {
    package func shutdown() async {}
}

/// The share of a file in a connection.
struct PooledConnection: Sendable {
    let client: SFTPClient
    let checksums: RemoteChecksums
    let hostKeyFingerprint: String?
}

/// Lends connections that no other file uses, as far as available.
struct ConnectionLender: Sendable {
    /// Starts making connections for tasks that are about to request one each.
    let prepare: @Sendable (_ count: Int) async -> Void
    let lend: @Sendable (_ body: @Sendable (PooledConnection, SFTPFeatures) async throws -> Void) async throws -> Void
}
