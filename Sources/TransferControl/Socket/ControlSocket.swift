import Locking
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A Unix socket that never blocks, except in ``wait(for:_:)``.
///
/// Any thread may use ``interrupt()`` and ``isAbandoned`` at any time. Only one thread at a time may use the other members.
final class ControlSocket: Sendable {
    /// The descriptor; nil after it is closed, because the system can then reuse the number for another file.
    private let descriptor: Locked<CInt?>
    private let number: CInt

    /// - Parameter descriptor: A socket, connected or not. This object takes ownership.
    init(_ descriptor: CInt) {
        self.descriptor = Locked(descriptor)
        number = descriptor
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        #if canImport(Darwin)
            var isOn: CInt = 1
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<CInt>.size))
        #endif
    }

    deinit {
        descriptor.withLock { descriptor in
            if let descriptor { _ = Self.closeDescriptor(descriptor) }
            descriptor = nil
        }
    }

    private static func closeDescriptor(_ descriptor: CInt) -> CInt { close(descriptor) }

    static func make() throws(Errno) -> ControlSocket {
        #if canImport(Glibc)
            let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw .last }
        return ControlSocket(descriptor)
    }

    /// Ends the connection. Current and later calls behave as if the other end had disconnected.
    func interrupt() {
        descriptor.withLock { descriptor in
            if let descriptor { _ = shutdown(descriptor, CInt(SHUT_RDWR)) }
        }
    }

    /// Whether the other end has closed the connection and no received bytes remain unread.
    var isAbandoned: Bool {
        descriptor.withLock { descriptor in
            guard let descriptor else { return true }
            var byte: UInt8 = 0
            let count = unsafe recv(descriptor, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
            return count == 0 || count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR
        }
    }

    /// Connects to a listening socket.
    ///
    /// - Throws: `Errno.wouldBlock` if the backlog of the other end is full.
    func connect(to address: UnixSocketAddress) throws(Errno) {
        try unsafe address.withAddress { (pointer, size) throws(Errno) in
            #if canImport(Glibc)
                let status = unsafe Glibc.connect(number, pointer, size)
            #else
                let status = unsafe Darwin.connect(number, pointer, size)
            #endif
            if status != 0 { throw .last }
        }
    }

    /// The user of the process at the other end (unix(7), SO_PEERCRED; getpeereid(3)); nil if the system does not report it.
    var peerUser: uid_t? {
        #if os(Linux)
            // struct ucred: process, user and group, 32 bits each.
            var credentials: [UInt32] = [0, 0, 0]
            var size = socklen_t(MemoryLayout<UInt32>.size * credentials.count)
            let status = unsafe credentials.withUnsafeMutableBytes { bytes in
                unsafe getsockopt(number, SOL_SOCKET, SO_PEERCRED, bytes.baseAddress, &size)
            }
            return status == 0 ? credentials[1] : nil
        #else
            var (user, group) = (uid_t(), gid_t())
            return unsafe getpeereid(number, &user, &group) == 0 ? user : nil
        #endif
    }

    /// Receives the available bytes, at most `limit`. Returns an empty array at the end of the stream.
    ///
    /// - Throws: `Errno.wouldBlock` if no bytes are available.
    func receive(_ limit: Int) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: limit)
        while true {
            let count = unsafe bytes.withUnsafeMutableBytes { unsafe recv(number, $0.baseAddress, $0.count, 0) }
            if count >= 0 { return Array(bytes.prefix(count)) }
            if errno != EINTR { throw .last }
        }
    }

    /// Sends as many bytes as fit into the socket's buffer, and returns their number.
    ///
    /// - Throws: `Errno.wouldBlock` if the buffer is full.
    func send(_ bytes: ArraySlice<UInt8>) throws(Errno) -> Int {
        #if canImport(Glibc)
            let flags = CInt(MSG_NOSIGNAL)
        #else
            let flags: CInt = 0
        #endif
        while true {
            let count = unsafe bytes.withUnsafeBytes { bytes in
                #if canImport(Glibc)
                    unsafe Glibc.send(number, bytes.baseAddress, bytes.count, flags)
                #else
                    unsafe Darwin.send(number, bytes.baseAddress, bytes.count, flags)
                #endif
            }
            if count >= 0 { return count }
            if errno != EINTR { throw .last }
        }
    }

    /// A condition to wait for: received bytes, or room to send.
    enum Readiness {
        case bytes
        case room
    }

    /// Blocks until the socket is ready or the other end has disconnected.
    ///
    /// - Returns: Whether the socket is ready or disconnected; false if the timeout has passed.
    func wait(for readiness: Readiness, _ timeout: Duration) throws(Errno) -> Bool {
        let deadline = ContinuousClock.now + timeout
        while true {
            var request = pollfd(fd: number, events: Int16(readiness == .bytes ? POLLIN : POLLOUT), revents: 0)
            let left = (deadline - .now) / .milliseconds(1)
            let count = unsafe poll(&request, 1, CInt(max(0, min(left.rounded(.up), 1e9))))
            if count > 0 { return true }
            if count == 0 { return false }
            if errno != EINTR { throw .last }
        }
    }
}
