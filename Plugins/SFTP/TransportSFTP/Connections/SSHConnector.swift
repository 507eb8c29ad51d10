import CurlEngine
import Locking
import Logging
import SSHEngine
import SystemPackage
import TransferCore

/// Opens SSH connections with a channel for SFTP.
struct SSHConnector: SFTPConnector {
    /// For routes with network options. Its thread starts with the first such route.
    private let engine = CurlEngine()
    private let keepaliveInterval: Duration

    /// The time to wait for a proxy program to exit after its connection broke.
    private static let exitTimeout = Duration.seconds(2)

    init(_ policy: PoolPolicy) { keepaliveInterval = policy.keepaliveInterval }

    func connect(to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger) async throws -> any SFTPLink {
        let server = try SFTPServer(endpoint)
        var settings = SSHSettings(server)
        settings.keepaliveInterval = keepaliveInterval
        let current = Locked<ProxyProgram?>(nil)
        let connection: SSHConnection
        do {
            connection = try await SSHConnection.open(
                settings,
                over: { [engine] in
                    current.withLock { $0 }?.end()
                    let route = try await server.route.open(
                        to: server.address, by: engine, credentials: credentials, logger: logger)
                    current.withLock { $0 = route?.program }
                    return route?.socket
                }, credentials: credentials, logger: logger)
        } catch let error as TransferError where error.code == .connectionLost {
            let program = current.withLock { $0 }
            let end = await program?.end(within: Self.exitTimeout)
            program?.end()
            throw end?.explanation(of: error, server.address) ?? error
        } catch {
            current.withLock { $0 }?.end()
            throw error
        }
        let program = current.withLock { $0 }
        do {
            return try await SSHLink.open(over: connection, by: program, to: server.address, logger: logger)
        } catch {
            await connection.close()
            program?.end()
            throw error
        }
    }

    func shutdown() async { await engine.shutdown() }
}

extension SFTPClient: SSHChannelHandler {}

extension SSHConnection: CommandRunner {
    package func run(_ command: [UInt8], input: [UInt8]) async throws -> [UInt8] {
        try await run(command, input: input, outputLimit: 1 << 20).output
    }
}

final class SSHLink: SFTPLink {
    /// The client is created before its channel, and wakes and closes the channel through this object.
    private final class ChannelHolder: Sendable {
        let channel = Locked<SSHChannel?>(nil)

        func wake() { channel.withLock { $0 }?.wake() }
        func close() { channel.withLock { $0 }?.close() }
    }

    let client: SFTPClient
    var commands: (any CommandRunner)? { connection }
    var hostKeyFingerprint: String? { connection.agreement.hostKeyFingerprint }
    private let connection: SSHConnection
    private let program: ProxyProgram?

    static func open(
        over connection: SSHConnection, by program: ProxyProgram?, to address: SFTPAddress, logger: Logger
    ) async throws -> SSHLink {
        let holder = ChannelHolder()
        // Later attempts also use the connection, so its log messages must not name this attempt.
        var logger = logger
        for key in ["session", "item", "attempt"] { logger[metadataKey: key] = nil }
        let client = SFTPClient(serverName: address.serverName, logger: logger, wake: { holder.wake() }, giveUp: { _ in holder.close() })
        let channel = try await connection.openSubsystem("sftp", handler: client)
        holder.channel.withLock { $0 = channel }
        // Sends requests that were made before the client could wake the channel.
        channel.wake()
        return SSHLink(client, connection, program)
    }

    private init(_ client: SFTPClient, _ connection: SSHConnection, _ program: ProxyProgram?) {
        self.client = client
        self.connection = connection
        self.program = program
    }

    func close() async {
        await connection.close()
        program?.end()
    }
}

extension SSHSettings {
    init(_ server: SFTPServer) {
        let options = server.options
        self.init(host: server.address.host, port: server.address.port, user: server.address.user)
        authentication.agent =
            switch options.agent {
            case .environment: .environment
            case .none: .none
            case .socket(let path): .socket(FilePath(path))
            }
        authentication.keyFiles = options.identities.map { .init(path: FilePath($0), passphrase: server.passphrase) }
        authentication.password = server.password
        let trust: HostKeyPolicy.Trust =
            switch options.hostKey {
            case .strict: .strict
            case .acceptNew: .acceptNew
            case .pinned(let fingerprint): .pinned([fingerprint])
            }
        hostKeys = options.knownHosts.map { HostKeyPolicy(trust: trust, userFile: FilePath($0)) } ?? HostKeyPolicy(trust: trust)
        allowsSHA1 = options.allowSHA1
    }
}
