import CSSH2

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The bytes on a session's socket, and what the library's callbacks need. Used by one thread.
///
/// libssh2 reads the bytes before the identification string one by one, for as long as any arrive; the limit here ends that.
final class SocketTraffic {
    /// The maximum number of bytes before the key exchange is complete. Its largest packet has 35,000 (RFC 4253, section 6.1).
    static let handshakeLimit = 256 << 10

    private(set) var received = 0
    /// When bytes last arrived.
    private(set) var lastReceived = ContinuousClock.now
    /// When the socket last took bytes.
    private(set) var lastSent = ContinuousClock.now
    /// The first bytes from the server, to identify a server that is not SSH.
    private(set) var greeting: [UInt8] = []
    /// After this time, no bytes are taken; nil for no limit.
    var deadline: ContinuousClock.Instant?
    var limit: Int? = handshakeLimit
    private(set) var hasExceeded = false
    /// Whether the server closed the connection, or it broke in either direction.
    private(set) var hasEnded = false
    /// The server's reason for disconnecting (RFC 4253, section 11.1).
    var disconnectReason: String?
    /// Answers the server's questions during keyboard-interactive authentication.
    var answers: KeyboardAnswers?
    /// Signs during public key authentication.
    var signer: AgentSigner?

    static func from(_ context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) -> SocketTraffic? {
        guard let object = unsafe context?.pointee else { return nil }
        return unsafe Unmanaged<SocketTraffic>.fromOpaque(object).takeUnretainedValue()
    }

    /// - Returns: As recv(2), with errors as negative numbers, as libssh2 expects.
    func receive(_ socket: CInt, _ buffer: UnsafeMutableRawPointer?, _ length: Int, _ flags: CInt) -> Int {
        if let deadline, ContinuousClock.now >= deadline { return Int(-ETIMEDOUT) }
        if let limit, received >= limit {
            hasExceeded = true
            return Int(-ECONNABORTED)
        }
        let count = unsafe recv(socket, buffer, length, flags)
        guard count > 0 else {
            let result = count == 0 ? 0 : Self.negative(errno)
            if result != -Int(EAGAIN) { hasEnded = true }
            return result
        }
        received += count
        lastReceived = .now
        if greeting.count < 256, limit != nil, let buffer = unsafe buffer {
            unsafe greeting.append(contentsOf: UnsafeRawBufferPointer(start: buffer, count: min(count, 256 - greeting.count)))
        }
        return count
    }

    func send(_ socket: CInt, _ buffer: UnsafeRawPointer?, _ length: Int, _ flags: CInt) -> Int {
        let count = unsafe Self.sendNow(socket, buffer, length, flags | CInt(MSG_NOSIGNAL))
        guard count >= 0 else {
            let result = Self.negative(errno)
            if result != -Int(EAGAIN) { hasEnded = true }
            return result
        }
        lastSent = .now
        return count
    }

    private static func negative(_ code: CInt) -> Int {
        Int(code == EINTR || code == EWOULDBLOCK ? -EAGAIN : -code)
    }

    // A method of the same name hides the system's function.
    private static func sendNow(_ socket: CInt, _ buffer: UnsafeRawPointer?, _ length: Int, _ flags: CInt) -> Int {
        #if canImport(Glibc)
            unsafe Glibc.send(socket, buffer, length, flags)
        #else
            unsafe Darwin.send(socket, buffer, length, flags)
        #endif
    }
}
