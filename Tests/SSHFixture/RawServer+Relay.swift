import Dispatch
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension RawServer {
    package enum Direction: Sendable {
        case fromClient
        case fromServer
    }

    /// Starts a relay to another port. Its connections break after ``cut()``, or after a number of bytes.
    ///
    /// - Parameters:
    ///   - limit: The exact number of bytes from the server after which a connection breaks, or nil for no limit.
    ///   - clientLimit: The exact number of bytes from the client after which a connection breaks, or nil for no limit.
    ///   - resets: Whether a connection that breaks at a limit is reset instead of closed.
    ///   - bufferSize: The size of the receive buffers, or nil for the system's default.
    ///   - admits: Called first for each connection. May exchange bytes with the client. Returns whether to relay the connection.
    ///   - observes: Called with all bytes, before `passes`.
    ///   - passes: Called with the number of received bytes. Returns whether to forward the bytes. Once it returns false, the connection
    ///     forwards no more bytes in that direction.
    package static func relay(
        to port: UInt16, limit: Int? = nil, clientLimit: Int? = nil, resets: Bool = false, bufferSize: Int? = nil,
        admits: @escaping @Sendable (Connection) -> Bool = { _ in true },
        observes: @escaping @Sendable (Direction, [UInt8]) -> Void = { _, _ in },
        passes: @escaping @Sendable (Direction, Int) -> Bool = { _, _ in true }
    ) throws -> RawServer {
        try RawServer(bufferSize: bufferSize) { client in
            guard admits(client), let descriptor = Loopback.connect(to: port) else { return }
            let server = Connection(descriptor: descriptor)
            let ended = DispatchSemaphore(value: 0)
            let thread: Void? = try? startThread {
                pass(from: client, to: server, atMost: clientLimit) { bytes in
                    observes(.fromClient, bytes)
                    return passes(.fromClient, bytes.count)
                }
                shutdown(descriptor, CInt(SHUT_RDWR))
                ended.signal()
            }
            pass(from: server, to: client, atMost: limit) { bytes in
                observes(.fromServer, bytes)
                return passes(.fromServer, bytes.count)
            }
            shutdown(descriptor, CInt(SHUT_RDWR))
            if resets { client.reset() } else { shutdown(client.descriptor, CInt(SHUT_RDWR)) }
            // Another connection may get the number of a closed descriptor. The other thread must not receive bytes of that connection.
            if thread != nil { ended.wait() }
            close(descriptor)
        }
    }

    private static func pass(from source: Connection, to sink: Connection, atMost limit: Int?, passes: ([UInt8]) -> Bool) {
        var rest = limit ?? .max
        var isMute = false
        while rest > 0 {
            let bytes = Array(source.receive().prefix(rest))
            guard !bytes.isEmpty else { return }
            rest -= bytes.count
            isMute = !passes(bytes) || isMute
            guard isMute || sink.send(bytes) else { return }
        }
    }
}
