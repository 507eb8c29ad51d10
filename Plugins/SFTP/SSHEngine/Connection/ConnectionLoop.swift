import CSSH2
import Locking
import Logging
import SystemPackage
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs an SSH connection on a dedicated thread. Only this thread creates and uses the loop, so its properties need no lock.
final class ConnectionLoop {
    private let settings: SSHSettings
    private let mailbox: ConnectionMailbox
    private let logger: Logger
    private var channels: [ChannelPump] = []
    private var stuck: ChannelPump?
    private var stuckSince = ContinuousClock.now
    private var lastKeepalive = ContinuousClock.now
    /// The last time at which the loop began to read. Without channels, it does not read.
    private var listensSince = ContinuousClock.now

    private static let bufferSize = 256 << 10

    init(_ settings: SSHSettings, mailbox: ConnectionMailbox, logger: Logger) {
        self.settings = settings
        self.mailbox = mailbox
        self.logger = logger
    }

    /// Opens the connection, and runs it until it ends.
    ///
    /// - Parameters:
    ///   - given: A descriptor that is already connected to the server; nil to connect to the server.
    ///   - opened: Receives the agreed parameters when the connection is open, or the error if it can't be opened.
    ///   - credentials: The credential provider. Set to nil once the socket is connected.
    ///   - ending: Resolved last, with the error that ended the open connection, if any.
    func run(
        over given: FileDescriptor?, _ opened: SingleResult<SSHConnection.Agreement>, _ credentials: Locked<(any CredentialProvider)?>,
        _ ending: ConnectionEnding
    ) {
        var failure: TransferError?
        do {
            let socket = try given?.rawValue ?? SocketConnector(settings, mailbox: mailbox).connect()
            let session = try SSHSession(socket: socket, server: settings.server, mailbox: mailbox)
            defer { session.end() }
            let agreement = try verifyAndLogIn(over: session, credentials)
            session.traffic.limit = nil
            if opened.resume(.success(agreement)) { failure = serve(session) }
        } catch {
            opened.resume(.failure(error))
        }
        let error = failure
        for command in mailbox.close() {
            if case .open(let pending) = command {
                pending.opened.resume(
                    .failure(error ?? TransferError(.transient, .connectionLost, "The connection to \(settings.server) was closed.")))
            }
        }
        for channel in channels { channel.connectionEnded(error) }
        ending.resolve(error)
    }

    /// Sets `credentials` to nil first, because an open connection no longer needs them.
    private func verifyAndLogIn(
        over session: SSHSession, _ credentials: Locked<(any CredentialProvider)?>
    ) throws -> SSHConnection.Agreement {
        let provider = credentials.withLock { credentials in
            defer { credentials = nil }
            return credentials
        }
        guard let provider else { throw CancellationError() }
        let secrets = SecretReader(provider: provider, mailbox: mailbox)
        return try SessionOpening(session, settings, secrets: secrets, logger: logger).run()
    }

    /// Serves the channels until the connection ends.
    ///
    /// - Returns: The error that ended the connection; nil if the client closed it.
    private func serve(_ session: SSHSession) -> TransferError? {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.bufferSize, alignment: 16)
        defer { unsafe buffer.deallocate() }
        unsafe libssh2_keepalive_config(session.pointer, 1, 1)
        do throws(TransferError) {
            while !mailbox.isStopping {
                for command in mailbox.takeCommands() { handle(command, session) }
                let hasProgressed = unsafe try advance(buffer)
                if !hasProgressed || stuck != nil { try sleep(session) }
            }
        } catch {
            return error
        }
        if stuck == nil { session.disconnect() }
        return nil
    }

    private func handle(_ command: ConnectionCommand, _ session: SSHSession) {
        switch command {
        case .open(let pending):
            channels.append(ChannelPump(pending, session: session, receiveWindow: settings.receiveWindow))
        case .close(let id):
            channels.first { $0.request.id == id }?.close()
        }
    }

    /// Gives each channel one turn, but stops at a channel whose packet is partly sent, and opens only one channel at a time.
    ///
    /// - Returns: Whether a channel made progress, so that another call may make more.
    private func advance(_ buffer: UnsafeMutableRawBufferPointer) throws(TransferError) -> Bool {
        var hasProgressed = false
        var isOpening = false
        let order = stuck.map { stuck in [stuck] + channels.filter { $0 !== stuck } } ?? channels
        for channel in order {
            if channel.isOpening {
                if isOpening { continue }
                isOpening = true
            }
            switch unsafe try channel.advance(buffer) {
            case .idle: break
            case .progressed: hasProgressed = true
            case .stuck:
                if stuck !== channel { stuckSince = .now }
                stuck = channel
                return hasProgressed
            case .ended:
                channels.removeAll { $0 === channel }
                hasProgressed = true
            }
            if stuck === channel {
                stuck = nil
                hasProgressed = true
            }
        }
        return hasProgressed
    }

    private func sleep(_ session: SSHSession) throws(TransferError) {
        let now = ContinuousClock.now
        let interval = settings.keepaliveInterval
        // If the socket accepts no bytes for three keepalive intervals, the connection is considered lost. The same limit applies below if
        // the server sends no bytes.
        if stuck != nil {
            let silent = now - max(stuckSince, session.traffic.lastSent)
            guard silent < interval * 3 else { throw silentServerError }
            let (events, limit) = session.awaited
            let rest = interval * 3 - silent
            _ = mailbox.sleep([(session.socket, events)], milliseconds: min(rest, limit ?? rest).pollMilliseconds)
            return
        }
        guard !channels.isEmpty else { return try sleepWithoutChannels(session) }
        let silent = now - max(session.traffic.lastReceived, listensSince)
        guard silent < interval * 3 else { throw silentServerError }
        let untilKeepalive = interval - min(silent, now - lastKeepalive)
        if untilKeepalive <= .zero { try sendKeepalive(session) }
        let wait = min(interval, max(untilKeepalive, .milliseconds(1)))
        _ = mailbox.sleep([(session.socket, Int32(POLLIN))], milliseconds: wait.pollMilliseconds)
    }

    /// Waits while there are no channels, until the connection ends or another thread wakes this one. Received bytes do not end the wait,
    /// because the library reads the socket only for channels.
    private func sleepWithoutChannels(_ session: SSHSession) throws(TransferError) {
        #if canImport(Glibc)
            // POLLRDHUP (poll(2)), which Swift does not import.
            let hangUp: Int32 = 0x2000
        #else
            let hangUp: Int32 = 0
        #endif
        let events = mailbox.sleep([(session.socket, hangUp)], milliseconds: -1)
        listensSince = .now
        guard events == [0] else {
            throw TransferError(
                .transient, .connectionLost, "The server \(settings.server) closed the connection, or the connection broke.")
        }
    }

    private var silentServerError: TransferError {
        TransferError(
            .transient, .stalled,
            "The server \(settings.server) has not responded for \(settings.keepaliveInterval * 3); closing the connection.")
    }

    /// Every server responds to this request, possibly with a rejection (RFC 4254, section 4).
    private func sendKeepalive(_ session: SSHSession) throws(TransferError) {
        lastKeepalive = .now
        // If the socket accepted only part of the request, the library would forget the rest and lose synchronization.
        guard mailbox.isReady(session.socket, for: Int32(POLLOUT)) else { return }
        var seconds: CInt = 0
        let code = unsafe libssh2_keepalive_send(session.pointer, &seconds)
        guard code == 0 else { throw session.failure(code) }
    }
}
