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
    ///   - limit: After how many bytes from the server a connection breaks; nil for never.
    ///   - bufferSize: That of the receive buffers, if not the system's choice.
    ///   - greets: Talks with a client before anything is passed on, and says whether that is to be.
    ///   - passes: Told how many bytes come, and says whether they are passed on; behind those that are not, nothing is that goes the same way.
    package static func relay(
        to port: UInt16, limit: Int? = nil, bufferSize: Int? = nil, greets: @escaping @Sendable (Connection) -> Bool = { _ in true },
        passes: @escaping @Sendable (Direction, Int) -> Bool = { _, _ in true }
    ) throws -> RawServer {
        try RawServer(bufferSize: bufferSize) { client in
            guard greets(client), let descriptor = Loopback.connect(to: port) else { return }
            let server = Connection(descriptor: descriptor)
            let isClosed = Locked(false)
            _ = try? startThread {
                pass(from: client, to: server) { passes(.fromClient, $0) }
                // Under the lock, so that the descriptor is still the one that it was.
                isClosed.withLock { isClosed in
                    if !isClosed { shutdown(descriptor, CInt(SHUT_RDWR)) }
                }
            }
            var passed = 0
            pass(from: server, to: client, until: { passed >= limit ?? .max }) { count in
                passed += count
                return passes(.fromServer, count)
            }
            isClosed.withLock { isClosed in
                isClosed = true
                close(descriptor)
            }
            shutdown(client.descriptor, CInt(SHUT_RDWR))
        }
    }

    private static func pass(
        from source: Connection, to sink: Connection, until isEnough: () -> Bool = { false }, passes: (Int) -> Bool
    ) {
        var isMute = false
        repeat {
            let bytes = source.receive()
            guard !bytes.isEmpty else { return }
            isMute = !passes(bytes.count) || isMute
            guard isMute || sink.send(bytes) else { return }
        } while !isEnough()
    }
}
