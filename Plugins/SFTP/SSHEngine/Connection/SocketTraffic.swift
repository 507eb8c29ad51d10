import CSSH2

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What went over a session's socket, and what the library's callbacks need. Used by one thread.
///
/// libssh2 reads what comes before the identification string byte by byte, and for as long as something comes: the limit here is what ends that.
final class SocketTraffic {
    /// How many bytes may come before keys are agreed on. The largest packet of a key exchange has 35,000 (RFC 4253, section 6.1).
    static let handshakeLimit = 256 << 10

    private(set) var received = 0
    /// When bytes came last.
    private(set) var lastReceived = ContinuousClock.now
    /// When the socket took bytes last.
    private(set) var lastSent = ContinuousClock.now
    /// The first bytes from the server, to say what it is if it isn't one for SSH.
    private(set) var greeting: [UInt8] = []
    /// No further bytes are taken then; nil for none.
    var deadline: ContinuousClock.Instant?
    var limit: Int? = handshakeLimit
    private(set) var hasExceeded = false
    /// Whether the server closed the connection, or it broke, in either direction.
    private(set) var hasEnded = false
    /// Why the server said that it disconnects (RFC 4253, section 11.1).
    var farewell: String?
    /// What answers the server's questions during keyboard-interactive authentication.
    var answers: KeyboardAnswers?
    /// What signs during public key authentication.
    var signer: AgentSigner?

    static func from(_ context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) -> SocketTraffic? {
        guard let object = unsafe context?.pointee else { return nil }
        return unsafe Unmanaged<SocketTraffic>.fromOpaque(object).takeUnretainedValue()
    }

    /// - Returns: As recv(2), but errors as their negative numbers, which is what libssh2 expects.
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
