import Locking
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Resolves a name and connects to one of its addresses, on the connection's thread.
struct SocketConnector {
    private let settings: SSHSettings
    private let mailbox: ConnectionMailbox

    /// The time to wait for a response before also trying the next address (RFC 8305, section 5).
    private static let headStart = Duration.milliseconds(250)

    init(_ settings: SSHSettings, mailbox: ConnectionMailbox) {
        self.settings = settings
        self.mailbox = mailbox
    }

    /// - Returns: A connected, non-blocking socket. The caller must close it.
    /// - Throws: A `TransferError` of the class `unreachable` or `noSpace`, or `CancellationError` if the connection must stop.
    func connect() throws -> CInt {
        let deadline = Deadline(
            in: settings.connectTimeout,
            TransferError(
                .unreachable, .timedOut,
                "The server \(settings.server) did not respond within \(settings.connectTimeout); "
                    + "check its address, and firewalls on the path."
            ))
        let addresses = try lookUp(by: deadline)
        return try connect(to: addresses, by: deadline)
    }

    // MARK: The name

    /// The C library's lookup can't be interrupted, so it runs on a separate thread, which this method abandons after the deadline.
    private func lookUp(by deadline: Deadline) throws -> [SocketAddress] {
        let found = Locked<Result<[SocketAddress], TransferError>?>(nil)
        let (host, port, mailbox) = (settings.host, settings.port, mailbox)
        do {
            try startThread {
                let result = Result { () throws(TransferError) in try SocketAddress.lookUp(host, port: port) }
                found.withLock { $0 = result }
                mailbox.wake()
            }
        } catch {
            throw TransferError(.noSpace, .internalFailure, "Cannot create a thread to look up \(host).", cause: "\(error)")
        }
        while true {
            if let result = found.withLock({ $0 }) { return try result.get() }
            try mailbox.wait(for: 0, on: nil, by: deadline)
        }
    }

    // MARK: The connection

    private func connect(to addresses: [SocketAddress], by deadline: Deadline) throws -> CInt {
        var waiting = addresses[...]
        var sockets: [CInt] = []
        var causes: [String] = []
        var nextStart = ContinuousClock.now
        defer { for socket in sockets { close(socket) } }
        while true {
            guard !mailbox.isStopping else { throw CancellationError() }
            if sockets.isEmpty || ContinuousClock.now >= nextStart, let address = waiting.popFirst() {
                do throws(SocketAddress.Refusal) {
                    sockets.append(try address.startConnecting(bufferSize: settings.socketBufferSize))
                } catch {
                    causes.append(error.text)
                }
                nextStart = .now + Self.headStart
                continue
            }
            guard !sockets.isEmpty else { throw refused(causes) }
            var rest = deadline.milliseconds
            guard rest > 0 else { throw deadline.error }
            if !waiting.isEmpty { rest = min(rest, (nextStart - .now).pollMilliseconds) }
            let ready = mailbox.sleep(sockets.map { ($0, Int32(POLLOUT)) }, milliseconds: rest)
            for (socket, events) in zip(sockets, ready) where events != 0 {
                sockets.removeAll { $0 == socket }
                if let code = SocketAddress.error(of: socket) {
                    close(socket)
                    causes.append(unsafe String(cString: strerror(code)))
                    nextStart = .now
                } else {
                    return socket
                }
            }
        }
    }

    private func refused(_ causes: [String]) -> TransferError {
        TransferError(
            .unreachable, .connectionRefused,
            "The server \(settings.server) can't be reached; check its address and port, and that it is running.",
            cause: causes.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }.joined(separator: "; "))
    }
}
