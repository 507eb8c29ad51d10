#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Blocking reads and writes on a connected socket. Only one thread may use an instance.
final class SocketStream {
    private let socket: CInt
    private var buffered: [UInt8] = []

    init(_ socket: CInt) {
        self.socket = socket
    }

    /// The IP address of the other end; empty if unknown.
    var peerAddress: String {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isKnown = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(socket, $0, &size) == 0 }
        }
        guard isKnown else { return "" }
        return unsafe withUnsafeBytes(of: address.sin_addr) { unsafe $0.map { "\($0)" }.joined(separator: ".") }
    }

    /// Reads a message head, up to the empty line that ends it. Returns nil at the end of the stream.
    func readHead() -> [UInt8]? {
        let end: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
        while true {
            if let index = buffered.indices.first(where: { buffered[$0...].starts(with: end) }) {
                defer { buffered.removeFirst(index + end.count) }
                return Array(buffered[..<index])
            }
            guard receive() else { return nil }
        }
    }

    /// Reads `count` bytes, or fewer at the end of the stream.
    func read(_ count: Int) -> [UInt8] {
        while buffered.count < count, receive() {}
        defer { buffered.removeFirst(min(count, buffered.count)) }
        return Array(buffered.prefix(count))
    }

    /// Reads and discards `count` bytes.
    ///
    /// - Returns: Whether there were enough bytes.
    func skip(_ count: Int) -> Bool {
        var left = count - min(count, buffered.count)
        buffered.removeFirst(count - left)
        var bytes = [UInt8](repeating: 0, count: min(left, 1 << 20))
        while left > 0 {
            let received = unsafe bytes.withUnsafeMutableBytes { unsafe recv(socket, $0.baseAddress, min($0.count, left), 0) }
            guard received > 0 else { return false }
            left -= received
        }
        return true
    }

    /// Reads one chunk of a chunked body (RFC 9112, section 7.1). Returns no bytes for the last chunk, and nil for an incomplete or invalid
    /// chunk.
    func readChunk() -> [UInt8]? {
        guard let line = readLine(), let size = Int(line.prefix { $0 != ";" }, radix: 16), size >= 0 else { return nil }
        guard size > 0 else { return [] }
        let bytes = read(size + 2)
        return bytes.count == size + 2 ? Array(bytes.dropLast(2)) : nil
    }

    /// Reads up to a line break. Returns nil at the end of the stream.
    func readLine() -> String? {
        while true {
            if let index = buffered.firstIndex(of: 0x0A) {
                defer { buffered.removeFirst(index + 1) }
                return String(decoding: buffered[..<index].filter { $0 != 0x0D }, as: UTF8.self)
            }
            guard receive() else { return nil }
        }
    }

    func write(_ text: String) -> Bool {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = unsafe bytes.withUnsafeBytes { unsafe send(socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            bytes.removeFirst(count)
        }
        return true
    }

    /// Closes the connection for writing only. Closing the socket while received bytes are unread would reset the connection, and the client might
    /// lose bytes that were sent before (RFC 9112, section 9.6).
    func endWriting() {
        shutdown(socket, CInt(SHUT_WR))
    }

    func waitForEnd() {
        while receive() { buffered.removeAll() }
    }

    /// Makes the later close(2) reset the connection (socket(7), SO_LINGER).
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    private func receive() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(socket, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return false }
        buffered += buffer[..<count]
        return true
    }
}
