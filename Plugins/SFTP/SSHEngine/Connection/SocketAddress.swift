import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// An address for a TCP connection, from getaddrinfo(3).
struct SocketAddress: Sendable {
    /// The error for a socket that can't be created, or can't start to connect.
    struct Refusal: Error {
        let text: String

        init(_ code: CInt = errno) {
            text = unsafe String(cString: strerror(code))
        }
    }

    let family: CInt
    let bytes: [UInt8]

    /// Resolves a name. Blocks until the system's resolver returns.
    ///
    /// - Throws: A `TransferError` of the class `unreachable`.
    static func lookUp(_ host: String, port: UInt16) throws(TransferError) -> [SocketAddress] {
        var hints = unsafe addrinfo()
        #if canImport(Glibc)
            unsafe hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        #else
            unsafe hints.ai_socktype = SOCK_STREAM
        #endif
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, "\(port)", &hints, &list)
        guard code == 0 else {
            throw TransferError(
                .unreachable, .hostNotFound, "The name \(printable(host.utf8)) of the SSH server can't be resolved.",
                cause: unsafe String(cString: gai_strerror(code)))
        }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = unsafe list
        while let entry = unsafe next {
            if let address = unsafe entry.pointee.ai_addr {
                let bytes = unsafe [UInt8](UnsafeRawBufferPointer(start: address, count: Int(entry.pointee.ai_addrlen)))
                addresses.append(SocketAddress(family: unsafe entry.pointee.ai_family, bytes: bytes))
            }
            unsafe next = entry.pointee.ai_next
        }
        return addresses
    }

    /// The socket is non-blocking.
    func startConnecting(bufferSize: Int?) throws(Refusal) -> CInt {
        #if canImport(Glibc)
            let descriptor = socket(family, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let descriptor = socket(family, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw Refusal() }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        Self.set(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        Self.set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
        if let bufferSize {
            Self.set(descriptor, SOL_SOCKET, SO_SNDBUF, CInt(clamping: bufferSize))
            Self.set(descriptor, SOL_SOCKET, SO_RCVBUF, CInt(clamping: bufferSize))
        }
        let result = unsafe bytes.withUnsafeBytes { bytes in
            unsafe connect(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard result == 0 || errno == EINPROGRESS || errno == EINTR else {
            let refusal = Refusal()
            close(descriptor)
            throw refusal
        }
        return descriptor
    }

    /// Returns nil if the socket is now connected.
    static func error(of descriptor: CInt) -> CInt? {
        var code: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else { return errno }
        return code == 0 ? nil : code
    }

    private static func set(_ descriptor: CInt, _ level: CInt, _ option: CInt, _ value: CInt) {
        var value = value
        unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
    }
}
