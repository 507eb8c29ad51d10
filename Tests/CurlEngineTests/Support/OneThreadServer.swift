import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#endif

/// A server with one thread. It always sends the same response, and stores no requests. Because it uses few resources, tests can measure the
/// resources of the client.
final class OneThreadServer: Sendable {
    let port: UInt16
    private let listener: CInt
    private let batchSize: Int
    private let response: [UInt8]
    private let onBatch: @Sendable () -> Void

    /// - Parameters:
    ///   - batchSize: The number of requests that must arrive before the server responds to them.
    ///   - content: The content of each response, or nil for 204 without content.
    ///   - onBatch: Called when `batchSize` requests have arrived, before the responses.
    init(batchSize: Int = 1, content: [UInt8]? = nil, onBatch: @escaping @Sendable () -> Void = {}) throws {
        struct CannotListen: Error {}
        self.batchSize = batchSize
        let head = content.map { "HTTP/1.1 200 OK\r\nContent-Length: \($0.count)\r\n\r\n" } ?? "HTTP/1.1 204 No Content\r\n\r\n"
        response = Array(head.utf8) + (content ?? [])
        self.onBatch = onBatch
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
        var waiting: [CInt] = []
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        var received: [CInt: [UInt8]] = [:]
        while true {
            unsafe poll(&sockets, nfds_t(sockets.count), -1)
            for index in sockets.indices.reversed() where sockets[index].revents != 0 {
                let socket = sockets[index].fd
                if socket == listener {
                    let connection = accept(listener, nil, nil)
                    if connection >= 0 { sockets.append(pollfd(fd: connection, events: Int16(POLLIN), revents: 0)) }
                    continue
                }
                let count = unsafe recv(socket, &buffer, buffer.count, 0)
                guard count > 0 else {
                    received[socket] = nil
                    close(socket)
                    sockets.remove(at: index)
                    continue
                }
                let request = (received.removeValue(forKey: socket) ?? []) + buffer[..<count]
                if Self.isComplete(request) { waiting.append(socket) } else { received[socket] = request }
            }
            guard waiting.count >= batchSize else { continue }
            onBatch()
            for socket in waiting { unsafe send(socket, response, response.count, CInt(MSG_NOSIGNAL)) }
            waiting.removeAll()
        }
    }

    private static func isComplete(_ request: [UInt8]) -> Bool {
        guard let end = request.firstRange(of: Array("\r\n\r\n".utf8)) else { return false }
        let fields = String(decoding: request[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let length = fields.first { $0.hasPrefix("Content-Length: ") }.flatMap { Int($0.dropFirst("Content-Length: ".count)) }
        return request.count - end.upperBound >= length ?? 0
    }
}
