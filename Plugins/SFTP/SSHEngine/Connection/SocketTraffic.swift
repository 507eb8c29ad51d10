import CSSH2

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Receives and sends the bytes of a session's socket, and holds the state for libssh2's callbacks. Used only on the connection's thread.
final class SocketTraffic {
    /// The maximum number of bytes to receive before authentication has succeeded. libssh2 has no limit for the bytes before the server's
    /// identification string. The largest packet that all servers must support has only 35,000 bytes (RFC 4253, section 6.1).
    static let handshakeLimit = 256 << 10

    private(set) var received = 0
    private(set) var lastReceived = ContinuousClock.now
    private(set) var lastSent = ContinuousClock.now
    /// The first 256 bytes from the server, to recognize a server that does not use SSH.
    private(set) var greeting: [UInt8] = []
    /// ``receive(_:_:_:_:)`` fails after this time; nil for no limit.
    var deadline: ContinuousClock.Instant?
    /// The maximum number of received bytes; nil for no limit.
    var limit: Int? = handshakeLimit
    private(set) var hasExceededLimit = false
    /// Whether the server closed the connection, or the connection broke.
    private(set) var hasEnded = false
    /// The server's reason for disconnecting (RFC 4253, section 11.1).
    var disconnectReason: String?
    var keyboardResponder: KeyboardResponder?
    var signer: AgentSigner?

    static func from(_ context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) -> SocketTraffic? {
        guard let object = unsafe context?.pointee else { return nil }
        return unsafe Unmanaged<SocketTraffic>.fromOpaque(object).takeUnretainedValue()
    }

    /// - Returns: The number of bytes; 0 at the end of the stream; for an error, the negative error number, as libssh2 expects.
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

    // ``send(_:_:_:_:)`` hides the system's function of that name.
    private static func sendNow(_ socket: CInt, _ buffer: UnsafeRawPointer?, _ length: Int, _ flags: CInt) -> Int {
        #if canImport(Glibc)
            unsafe Glibc.send(socket, buffer, length, flags)
        #else
            unsafe Darwin.send(socket, buffer, length, flags)
        #endif
    }
}
