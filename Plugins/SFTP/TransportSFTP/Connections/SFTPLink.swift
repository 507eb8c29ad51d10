package import Logging
package import TransferCore

/// A connection that an SFTP conversation is held over.
package protocol SFTPLink: Sendable {
    /// The conversation.
    var client: SFTPClient { get }

    /// Runs commands over the same connection; nil if none can be run.
    var commands: (any CommandRunner)? { get }

    /// The fingerprint of the server's host key, as OpenSSH writes it; nil for a link that is not made by SSH.
    var hostKeyFingerprint: String? { get }

    /// Ends it, and returns when nothing of it is left.
    func close() async
}

/// Makes connections to endpoints.
package protocol SFTPConnector: Sendable {
    /// Connects, and proves who we are.
    ///
    /// - Throws: A `TransferError` of the class `unreachable`, `trust`, `credentials` or `transient`; `CancellationError`.
    func connect(to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger) async throws -> any SFTPLink

    /// Ends what is needed to make connections, once no more are made.
    func shutdown() async
}

extension SFTPConnector {
    package func shutdown() async {}
}

/// What a file gets of a connection that it shares with others.
struct PooledConnection: Sendable {
    let client: SFTPClient
    let checksums: RemoteChecksums
    let hostKeyFingerprint: String?
}

/// Lends connections that nobody else uses, as far as there may be such.
struct ConnectionLender: Sendable {
    /// Begins to make so many, for those who are about to ask for one each.
    let prepare: @Sendable (_ count: Int) async -> Void
    let lend: @Sendable (_ body: @Sendable (PooledConnection, ServerFeatures) async throws -> Void) async throws -> Void
}
