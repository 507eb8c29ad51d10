import Foundation
import Glibc

/// A tus server for one small upload at a time. It accepts content in the request that creates an upload, and reports the time at
/// which the first byte of the content arrives.
final class FirstByteServer: Sendable {
    let port: Int
    private let listener: CInt
    private let arrivals = AsyncStream.makeStream(of: ContinuousClock.Instant.self)

    init() throws {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &size) == 0
            }
        }
        guard isListening else { throw BenchmarkError.failed("Cannot listen on 127.0.0.1") }
        self.listener = listener
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                Thread.detachNewThread { self.serve(connection) }
            }
        }
    }

    /// Waits for the next upload, and returns the time at which the first byte of its content arrived; nil if the task is cancelled.
    func nextArrival() async -> ContinuousClock.Instant? {
        for await arrival in arrivals.stream { return arrival }
        return nil
    }

    private func serve(_ connection: CInt) {
        defer { close(connection) }
        var received = Data()
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        let end = Data("\r\n\r\n".utf8)
        while true {
            guard let head = received.range(of: end) else {
                let count = recv(connection, &buffer, buffer.count, 0)
                guard count > 0 else { return }
                received.append(contentsOf: buffer.prefix(count))
                continue
            }
            let text = String(decoding: received[..<head.lowerBound], as: UTF8.self)
            received.removeSubrange(..<head.upperBound)
            if text.hasPrefix("OPTIONS") {
                respond(connection, "204 No Content\r\nTus-Version: 1.0.0\r\nTus-Extension: creation,creation-with-upload")
                continue
            }
            let line = text.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
            let length = line.flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
            var arrival = received.isEmpty ? nil : ContinuousClock.now
            while received.count < length {
                let count = recv(connection, &buffer, buffer.count, 0)
                guard count > 0 else { return }
                arrival = arrival ?? .now
                received.append(contentsOf: buffer.prefix(count))
            }
            received.removeFirst(length)
            if let arrival { arrivals.continuation.yield(arrival) }
            respond(connection, "201 Created\r\nLocation: /files/1\r\nUpload-Offset: \(length)")
        }
    }

    private func respond(_ connection: CInt, _ response: String) {
        let bytes = Array("HTTP/1.1 \(response)\r\nTus-Resumable: 1.0.0\r\nContent-Length: 0\r\n\r\n".utf8)
        _ = send(connection, bytes, bytes.count, CInt(MSG_NOSIGNAL))
    }

    func stop() { shutdown(listener, CInt(SHUT_RDWR)) }
}
