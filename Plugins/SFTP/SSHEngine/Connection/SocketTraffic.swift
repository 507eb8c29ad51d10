import CSSH2

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Receives and sends the bytes of a session's socket, and holds the state for libssh2's callbacks. Only the connection's thread uses it.
///
/// libssh2 reads an unlimited number of bytes before the server's identification string, so ``limit`` bounds them.
final class SocketTraffic {
    /// The maximum number of received bytes until the user is authenticated. The largest packet that all servers must support, 35,000
    /// bytes, is much smaller (RFC 4253, section 6.1).
    static let handshakeLimit = 256 << 10

    /// The number of received bytes.
    private(set) var received = 0
    /// The time at which bytes last arrived.
    private(set) var lastReceived = ContinuousClock.now
    /// The time at which the socket last accepted bytes.
    private(set) var lastSent = ContinuousClock.now
    /// The first bytes from the server, to recognize a server that does not use SSH.
    private(set) var greeting: [UInt8] = []
    /// The time after which no more bytes are received; nil for no limit.
    var deadline: ContinuousClock.Instant?
    /// The maximum number of received bytes; nil for no limit.
    var limit: Int? = handshakeLimit
    private(set) var hasExceededLimit = false
    /// Whether the server closed the connection, or the connection broke.
    private(set) var hasEnded = false
    /// The server's reason for disconnecting (RFC 4253, section 11.1).
    var disconnectReason: String?
    /// Responds to the server's prompts during keyboard-interactive authentication.
    var keyboardResponder: KeyboardResponder?
    /// Signs data during public key authentication.
    var signer: AgentSigner?

    static func from(_ context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) -> SocketTraffic? {
        guard let object = unsafe context?.pointee else { return nil }
        return unsafe Unmanaged<SocketTraffic>.fromOpaque(object).takeUnretainedValue()
    }

    /// Receives bytes within the limits.
    ///
    /// - Returns: The number of bytes; 0 at the end. For an error, the negative error number, as libssh2 expects.
    func receive(_ socket: CInt, _ buffer: UnsafeMutableRawPointer?, _ length: Int, _ flags: CInt) -> Int {
        if let deadline, ContinuousClock.now >= deadline { return Int(-ETIMEDOUT) }
        if let limit, received >= limit {
            hasExceededLimit = true
            return Int(-ECONNABORTED)
        }
        let count = unsafe recv(socket, buffer, length, flags)
        guard count > 0 else {
            let result = count == 0 ? 0 : Self.negatedErrorNumber(errno)
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

    /// Sends bytes.
    ///
    /// - Returns: The number of sent bytes; for an error, the negative error number.
    func send(_ socket: CInt, _ buffer: UnsafeRawPointer?, _ length: Int, _ flags: CInt) -> Int {
        let count = unsafe Self.sendNow(socket, buffer, length, flags | CInt(MSG_NOSIGNAL))
        guard count >= 0 else {
            let result = Self.negatedErrorNumber(errno)
            if result != -Int(EAGAIN) { hasEnded = true }
            return result
        }
        lastSent = .now
        return count
    }

    private static func negatedErrorNumber(_ code: CInt) -> Int {
        Int(code == EINTR || code == EWOULDBLOCK ? -EAGAIN : -code)
    }

    // A separate function, because ``send(_:_:_:_:)`` hides the system's function of that name.
    private static func sendNow(_ socket: CInt, _ buffer: UnsafeRawPointer?, _ length: Int, _ flags: CInt) -> Int {
        #if canImport(Glibc)
            unsafe Glibc.send(socket, buffer, length, flags)
        #else
            unsafe Darwin.send(socket, buffer, length, flags)
        #endif
    }
}
