import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#endif

/// A server that answers requests without body by 204, all connections on one thread, and remembers nothing: for counting what others use.
final class OneThreadServer: Sendable {
    let port: UInt16
    private let listener: CInt
    /// How many requests must have arrived before any is answered.
    private let crowd: Int
    private let onCrowd: @Sendable () -> Void

    init(crowd: Int = 1, onCrowd: @escaping @Sendable () -> Void = {}) throws {
        struct CannotListen: Error {}
        self.crowd = crowd
        self.onCrowd = onCrowd
        listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(listener, address, size) == 0 && listen(listener, 4096) == 0 && getsockname(listener, address, &size) == 0
            }
        }
        guard isListening else { throw CannotListen() }
        port = UInt16(bigEndian: address.sin_port)
        try startThread { self.run() }
    }

    var url: String { "http://127.0.0.1:\(port)/" }

    /// Runs until the process ends.
    private func run() {
        var sockets = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
        var asking: [CInt] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            unsafe poll(&sockets, nfds_t(sockets.count), -1)
            for index in sockets.indices.reversed() where sockets[index].revents != 0 {
                let socket = sockets[index].fd
                if socket == listener {
                    let connection = accept(listener, nil, nil)
                    if connection >= 0 { sockets.append(pollfd(fd: connection, events: Int16(POLLIN), revents: 0)) }
                    continue
                }
                // A request without body over loopback comes in one piece.
                if unsafe recv(socket, &buffer, buffer.count, 0) > 0 {
                    asking.append(socket)
                } else {
                    close(socket)
                    sockets.remove(at: index)
                }
            }
            guard asking.count >= crowd else { continue }
            onCrowd()
            let answer = Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)
            for socket in asking { unsafe send(socket, answer, answer.count, CInt(MSG_NOSIGNAL)) }
            asking.removeAll()
        }
    }
}
