#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A port of the loopback interface that stays reserved while this object exists. Only a server that requests this port number with
/// SO_REUSEADDR (socket(7)) can use the port. While no such server listens, the port refuses connections. A test can therefore kill a server and
/// restart it on the same port.
package final class ReservedPort: Sendable {
    package let port: UInt16
    private let socket: CInt

    /// Reserves a free port without listening on it.
    package init() throws {
        struct CannotBind: Error {}
        #if canImport(Glibc)
            let socket = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        #else
            let socket = Darwin.socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        var reuses: CInt = 1
        unsafe setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &reuses, socklen_t(MemoryLayout<CInt>.size))
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(socket, address, size) == 0 && getsockname(socket, address, &size) == 0
            }
        }
        guard isBound else { throw CannotBind() }
        self.socket = socket
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit {
        close(socket)
    }

    /// The URL of a path at this port.
    package func url(_ path: String = "/files/") -> String { "http://127.0.0.1:\(port)\(path)" }
}
