#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Reads and writes one connected socket, waiting. Used by one thread.
final class SocketStream {
    private let socket: CInt
    private var buffered: [UInt8] = []

    init(_ socket: CInt) {
        self.socket = socket
    }

    /// Reads up to the empty line that ends a head; nil at the end of the stream.
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

    /// Reads so many bytes, or fewer at the end of the stream.
    func read(_ count: Int) -> [UInt8] {
        while buffered.count < count, receive() {}
        defer { buffered.removeFirst(min(count, buffered.count)) }
        return Array(buffered.prefix(count))
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

    func waitForEnd() {
        while receive() { buffered.removeAll() }
    }

    /// Makes the close that follows a reset instead of an orderly end (socket(7), SO_LINGER).
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    private func receive() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe recv(socket, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return false }
        buffered += chunk[..<count]
        return true
    }
}
