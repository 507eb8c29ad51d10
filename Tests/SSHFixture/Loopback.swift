#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

enum Loopback {
    struct SocketError: Error {}

    /// Connects to a port; nil if the connection is refused.
    static func connect(to port: UInt16) -> CInt? {
        let descriptor = makeSocket()
        let isConnected = unsafe withAddress(port) { address, size in unsafe systemConnect(descriptor, address, size) == 0 }
        guard isConnected else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// - Parameters:
    ///   - bufferSize: The size of the connections' receive buffers, or nil for the system's default.
    ///   - backlog: The maximum number of connections that wait to be accepted, minus one (Linux).
    static func listen(bufferSize: CInt? = nil, backlog: CInt = 128) throws -> (socket: CInt, port: UInt16) {
        let descriptor = makeSocket()
        if var bufferSize { unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bufferSize, socklen_t(MemoryLayout<CInt>.size)) }
        guard unsafe withAddress(0, { unsafe bind(descriptor, $0, $1) == 0 }), systemListen(descriptor, backlog),
            let port = port(of: descriptor)
        else {
            close(descriptor)
            throw SocketError()
        }
        return (descriptor, port)
    }

    /// Returns a port on which no process listens. Another process may start to use the port at any time.
    static func freePort() throws -> UInt16 {
        let descriptor = makeSocket()
        defer { close(descriptor) }
        guard unsafe withAddress(0, { unsafe bind(descriptor, $0, $1) == 0 }), let port = port(of: descriptor) else { throw SocketError() }
        return port
    }

    private static func port(of descriptor: CInt) -> UInt16? {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(descriptor, $0, &size) }
        }
        return result == 0 ? UInt16(bigEndian: address.sin_port) : nil
    }

    private static func withAddress(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }

    private static func makeSocket() -> CInt {
        #if canImport(Glibc)
            let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return descriptor
    }

    // Methods with the same names hide the system's functions.
    private static func systemConnect(_ descriptor: CInt, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> CInt {
        #if canImport(Glibc)
            unsafe Glibc.connect(descriptor, address, size)
        #else
            unsafe Darwin.connect(descriptor, address, size)
        #endif
    }

    private static func systemListen(_ descriptor: CInt, _ backlog: CInt) -> Bool {
        #if canImport(Glibc)
            Glibc.listen(descriptor, backlog) == 0
        #else
            Darwin.listen(descriptor, backlog) == 0
        #endif
    }
}

/// A port that neither accepts nor refuses connections, as if a firewall dropped the packets.
package final class SilentPort: Sendable {
    package let port: UInt16
    private let listener: CInt
    private let fillerConnection: CInt

    package init() throws {
        (listener, port) = try Loopback.listen(backlog: 0)
        // No connection is ever accepted, so this connection occupies the only slot of the backlog (listen(2)).
        guard let connection = Loopback.connect(to: port) else { throw Loopback.SocketError() }
        fillerConnection = connection
    }

    deinit {
        close(fillerConnection)
        close(listener)
    }
}
