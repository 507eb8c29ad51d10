import Locking
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension RawServer {
    /// Which way bytes go.
    package enum Direction: Sendable {
        case fromClient
        case fromServer
    }

    /// A relay to another port, whose connections break with ``cut()``, or after some bytes.
    ///
    /// - Parameters:
    ///   - limit: After exactly how many bytes from the server a connection breaks; nil for never.
    ///   - clientLimit: The same for bytes from the client.
    ///   - bufferSize: That of the receive buffers, if not the system's choice.
    ///   - greets: Talks with a client before anything is passed on, and says whether that is to be.
    ///   - hears: Gets the bytes that come.
    ///   - passes: Told how many bytes come, and says whether they are passed on; behind those that are not, nothing is that goes the same way.
    package static func relay(
        to port: UInt16, limit: Int? = nil, clientLimit: Int? = nil, bufferSize: Int? = nil,
        greets: @escaping @Sendable (Connection) -> Bool = { _ in true },
        hears: @escaping @Sendable (Direction, [UInt8]) -> Void = { _, _ in },
        passes: @escaping @Sendable (Direction, Int) -> Bool = { _, _ in true }
    ) throws -> RawServer {
        try RawServer(bufferSize: bufferSize) { client in
            guard greets(client), let descriptor = Loopback.connect(to: port) else { return }
            let server = Connection(descriptor: descriptor)
            let isClosed = Locked(false)
            _ = try? startThread {
                pass(from: client, to: server, atMost: clientLimit) { bytes in
                    hears(.fromClient, bytes)
                    return passes(.fromClient, bytes.count)
                }
                // Under the lock, so that the descriptor is still the one that it was.
                isClosed.withLock { isClosed in
                    if !isClosed { shutdown(descriptor, CInt(SHUT_RDWR)) }
                }
            }
            pass(from: server, to: client, atMost: limit) { bytes in
                hears(.fromServer, bytes)
                return passes(.fromServer, bytes.count)
            }
            isClosed.withLock { isClosed in
                isClosed = true
                close(descriptor)
            }
            shutdown(client.descriptor, CInt(SHUT_RDWR))
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
