import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// One end of a connection to a queue's control socket, for tests that send arbitrary bytes.
enum RawSocket {
    /// The end of a client, which connects to the socket.
    case client
    /// The end of the queue's owner, which creates the socket and listens.
    case owner

    /// Opens this end.
    ///
    /// - Parameter store: The storage folder. For ``owner``, the folder must not contain a control socket.
    /// - Returns: The descriptor, which the caller closes.
    func open(in store: FilePath) throws -> FileDescriptor {
        #if canImport(Glibc)
            let number = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let number = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard number >= 0 else { throw Errno(rawValue: errno) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: store.appending("control.sock").string.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let status = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> CInt in
                switch self {
                case .client: return unsafe connect(number, pointer, size)
                case .owner: return unsafe bind(number, pointer, size) == 0 ? listen(number, 16) : -1
                }
            }
        }
        guard status == 0 else {
            let error = Errno(rawValue: errno)
            close(number)
            throw error
        }
        return FileDescriptor(rawValue: number)
    }
}
