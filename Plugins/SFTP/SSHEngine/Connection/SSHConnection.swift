import CoreMetrics
import Locking
package import Logging
package import SystemPackage
package import TransferCore
import TransportSupport

/// One SSH connection with its own thread and any number of channels.
///
/// All methods can be called from any task. The connection closes when its last reference is released.
package final class SSHConnection: Sendable {
    /// The parameters that the client and the server agreed on when the connection was established, for logs.
    package struct Agreement: Sendable {
        /// The server's identification string (RFC 4253, section 4.2).
        package var serverVersion: String
        /// The key exchange, the host key's type, and the ciphers and MACs in each direction.
        package var methods: [String]
        /// The host key's fingerprint in OpenSSH's format.
        package var hostKeyFingerprint: String
        /// The method that authenticated the user, for example `publickey (/home/me/.ssh/id_ed25519)`; never a secret.
        package var authenticationMethod: String
    }

    package let agreement: Agreement
    private let mailbox: ConnectionMailbox
    private let ending: ConnectionEnding

    /// The version of libssh2 in this process.
    package static var libraryVersion: String { SSHSession.libraryVersion }

    /// Connects, verifies the server, and authenticates the user.
    ///
    /// Throws immediately when the task is cancelled, although a blocking call may continue for a while on the connection's thread.
    ///
    /// - Parameters:
    ///   - openSocket: Returns a socket that is connected to the server, and transfers its ownership. If the closure is nil or returns nil, this
    ///     method connects directly. The search for a pinned key may need several connections, and each connection needs another call.
    ///   - credentials: Supplies passwords and passphrases when they are needed.
    ///   - logger: Logs how the server was verified and the user was authenticated.
    /// - Throws: `CancellationError`, the error of `openSocket`, a `TransferError` that the credential provider threw, or a `TransferError`
    ///   of one of these classes:
    ///   - `unreachable`: No SSH server responds.
    ///   - `trust`: The host key is not trusted.
    ///   - `credentials`: The server accepts none of the credentials.
    ///   - `unsupported`: The server and libssh2 have no permitted algorithm in common.
    ///   - `transient`: The connection breaks, or a time limit has passed.
    ///   - `noSpace`: This machine is out of memory, threads or file descriptors.
    package static func open(
        _ settings: SSHSettings, over openSocket: (@Sendable () async throws -> FileDescriptor?)? = nil,
        credentials: any CredentialProvider,
        logger: Logger
    ) async throws -> SSHConnection {
        let start = ContinuousClock.now
        do {
            let connection = try await establish(settings, over: openSocket, credentials: credentials, logger: logger)
            record("connected", since: start)
            return connection
        } catch {
            record((error as? TransferError)?.failureClass.rawValue ?? "cancelled", since: start)
            throw error
        }
    }

    /// Reports an attempt to connect, and its duration, to the app's metrics backend (swift-metrics).
    ///
    /// - Parameter result: `connected`, `cancelled`, or the class of the error.
    private static func record(_ result: String, since start: ContinuousClock.Instant) {
        guard !(MetricsSystem.factory is NOOPMetricsHandler) else { return }
        Counter(label: "transferkit_ssh_connections", dimensions: [("result", result)]).increment()
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        CoreMetrics.Timer(label: "transferkit_ssh_connection_setup", dimensions: [("result", result)])
            .recordSeconds(Double(seconds) + Double(attoseconds) * 1e-18)
    }

    private static func establish(
        _ settings: SSHSettings, over openSocket: (@Sendable () async throws -> FileDescriptor?)?, credentials: any CredentialProvider,
        logger: Logger
    ) async throws -> SSHConnection {
        var settings = settings
        // A server with several keys presents the key whose type comes first in the client's list. The type of the pinned key is unknown,
        // because a fingerprint does not contain the type. So the loop tries one type after another.
        var shown: [HostKey] = []
        while true {
            let socket = try await openSocket?()
            do {
                return try await openOnce(settings, over: socket, credentials: credentials, logger: logger)
            } catch let unpinned as UnpinnedHostKey {
                let isNew = !shown.contains { $0.type == unpinned.key.type }
                shown.append(unpinned.key)
                settings.refusedKeyTypes.append(unpinned.key.type)
                guard isNew else { throw HostKeyCheck.unpinned(shown, settings) }
            } catch let error as TransferError where error.failureClass == .unsupported && !shown.isEmpty {
                // The server has no other key.
                throw HostKeyCheck.unpinned(shown, settings)
            }
        }
    }

    private static func openOnce(
        _ settings: SSHSettings, over socket: FileDescriptor?, credentials: any CredentialProvider, logger: Logger
    ) async throws -> SSHConnection {
        let mailbox: ConnectionMailbox
        do {
            try Task.checkCancellation()
            mailbox = try ConnectionMailbox()
        } catch {
            try? socket?.close()
            throw error
        }
        let opened = SingleResult<Agreement>()
        let ending = ConnectionEnding()
        // The thread lives as long as the connection, so it must not retain the credentials.
        let heldCredentials = Locked<(any CredentialProvider)?>(credentials)
        do {
            try startThread {
                let loop = ConnectionLoop(settings, mailbox: mailbox, logger: logger)
                loop.run(over: socket, opened, heldCredentials, ending)
            }
        } catch {
            try? socket?.close()
            throw TransferError(.noSpace, .internalFailure, "Cannot create a thread for an SSH connection.", cause: "\(error)")
        }
        // Each step has its own deadline. This limit for all steps also covers blocking calls, such as the decryption of a key.
        let limit = settings.connectTimeout + settings.handshakeTimeout + settings.authenticationTimeout + .seconds(5)
        let timeout = Task {
            try await Task.sleep(for: limit)
            opened.resume(
                .failure(TransferError(.transient, .timedOut, "The connection to \(settings.server) was not established within \(limit).")))
            mailbox.stop()
        }
        defer { timeout.cancel() }
        let agreement = try await withTaskCancellationHandler {
            try await opened.value()
        } onCancel: {
            opened.resume(.failure(CancellationError()))
            mailbox.stop()
        }
        return SSHConnection(agreement, mailbox, ending)
    }

    private init(_ agreement: Agreement, _ mailbox: ConnectionMailbox, _ ending: ConnectionEnding) {
        self.agreement = agreement
        self.mailbox = mailbox
        self.ending = ending
    }

    deinit {
        mailbox.stop()
    }

    /// Whether the connection is still open.
    package var isAlive: Bool { ending.outcome == nil }

    /// Waits until the connection has ended.
    ///
    /// - Returns: The error that ended the connection; nil after ``close()``.
    package func waitForEnd() async -> TransferError? {
        await ending.wait().error
    }

    /// Closes all channels and the connection. Returns after the thread has ended.
    package func close() async {
        mailbox.stop()
        _ = await ending.wait()
    }

    /// Starts a subsystem of the server on its own channel (RFC 4254, section 6.5), for example `sftp`.
    ///
    /// - Parameter handler: Receives and supplies the channel's bytes, possibly before this method returns. If this method throws, the
    ///   connection does not call ``SSHChannelHandler/end(_:)``.
    /// - Throws: `CancellationError`, or a `TransferError`. Its class is `unreachable` if the server has no such subsystem, and `transient`
    ///   if the server refuses to open another channel or the connection breaks.
    package func openSubsystem(_ name: String, handler: any SSHChannelHandler) async throws -> SSHChannel {
        let pending = ChannelRequest(id: mailbox.nextID(), program: .subsystem(name), handler: handler, opened: SingleResult())
        try await open(pending)
        return SSHChannel(id: pending.id, mailbox: mailbox)
    }

    /// Runs a command in the user's shell on the server, and waits until the command exits.
    ///
    /// - Parameters:
    ///   - command: The command in the server's encoding. The caller must quote it for the shell.
    ///   - input: The command's standard input.
    ///   - outputLimit: The maximum number of output bytes to keep. Further bytes are read and dropped.
    /// - Throws: `CancellationError`, or a `TransferError`. Its class is `unsupported` if the server does not let the user run commands. It is
    ///   `transient` if the server refuses to open another channel or the connection breaks.
    package func run(_ command: [UInt8], input: [UInt8] = [], outputLimit: Int = 1 << 20) async throws -> SSHCommandResult {
        let handler = CommandHandler(input: input, outputLimit: outputLimit)
        let done = SingleResult<ChannelRequest.End>()
        let id = mailbox.nextID()
        let pending = ChannelRequest(id: id, program: .command(command), handler: handler, opened: SingleResult()) {
            done.resume(.success($0))
        }
        try await open(pending)
        let end = try await withTaskCancellationHandler {
            try await done.value()
        } onCancel: {
            done.resume(.failure(CancellationError()))
            mailbox.post(.close(id))
        }
        if let error = end.error { throw error }
        return handler.result(end)
    }

    private func open(_ pending: ChannelRequest) async throws {
        try Task.checkCancellation()
        guard mailbox.post(.open(pending)) else {
            throw ending.outcome?.error ?? TransferError(.transient, .connectionLost, "The SSH connection was closed.")
        }
        try await withTaskCancellationHandler {
            try await pending.opened.value()
        } onCancel: {
            pending.opened.resume(.failure(CancellationError()))
            mailbox.post(.close(pending.id))
        }
    }
}
