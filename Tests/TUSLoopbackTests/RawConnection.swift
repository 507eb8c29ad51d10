import Foundation
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A plain TCP client that sends arbitrary bytes and can disconnect at any byte. Its methods block; see ``onThread(_:)``.
final class RawConnection {
    private var descriptor: CInt
    private let port: Int
    private var unread: [UInt8] = []

    struct Response: Sendable {
        var status: Int
        var headers: [String: String]
        var body: String
    }

    struct Failure: Error {
        let reason: String
    }

    init(to url: URL) throws {
        port = url.port ?? 0
        #if canImport(Glibc)
            descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        #else
            descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(url.port ?? 0).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Failure(reason: "connect: \(errno)") }
        // Prevents a test from hanging forever. No test depends on the value.
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close() }

    func close() {
        guard descriptor >= 0 else { return }
        #if canImport(Glibc)
            _ = Glibc.close(descriptor)
        #else
            _ = Darwin.close(descriptor)
        #endif
        descriptor = -1
    }

    /// Closes the connection for sending, but not for receiving.
    func endSending() {
        shutdown(descriptor, CInt(SHUT_WR))
    }

    func send(_ text: String) throws { try send(Data(text.utf8)) }

    func send(_ data: Data) throws {
        var rest = data
        while !rest.isEmpty {
            #if canImport(Glibc)
                let count = unsafe rest.withUnsafeBytes { unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            #else
                let count = unsafe rest.withUnsafeBytes { unsafe Darwin.send(descriptor, $0.baseAddress, $0.count, 0) }
            #endif
            guard count > 0 else { throw Failure(reason: "send: \(errno)") }
            rest = rest.dropFirst(count)
        }
    }

    /// Sends the head of a request with the headers that all tus requests need.
    func sendHead(_ method: String, _ target: String, _ headers: [String: String] = [:], version: String? = "1.0.0") throws {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n"
        if let version { text += "Tus-Resumable: \(version)\r\n" }
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        try send(text + "\r\n")
    }

    func request(
        _ method: String, _ target: String, _ headers: [String: String] = [:], body: Data? = nil, version: String? = "1.0.0"
    ) throws -> Response {
        var headers = headers
        if let body { headers["Content-Length"] = String(body.count) }
        try sendHead(method, target, headers, version: version)
        if let body { try send(body) }
        return try readResponse(toHead: method == "HEAD")
    }

    /// Reads a response. A response to a `HEAD` request has no body.
    func readResponse(toHead isHead: Bool = false) throws -> Response {
        let lines = try readHead()
        guard let status = lines.first.flatMap({ Int($0.split(separator: " ")[1]) }) else { throw Failure(reason: "no status line") }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            headers[parts[0].lowercased()] = parts.count > 1 ? parts[1] : ""
        }
        let length = isHead || status == 204 || status < 200 ? 0 : Int(headers["content-length"] ?? "0") ?? 0
        while unread.count < length { try fill() }
        defer { unread.removeFirst(length) }
        return Response(status: status, headers: headers, body: String(decoding: unread.prefix(length), as: UTF8.self))
    }

    /// Reads until the connection ends. The body of the response may be incomplete.
    func bytesUntilEnd() throws -> (head: [String], bodySize: Int) {
        let head = try readHead()
        while (try? fill()) != nil {}
        return (head, unread.count)
    }

    /// Waits for the server. Returns true if the server closes the connection, and false if it sends more bytes, or nothing within 60 s.
    func isAtEnd() -> Bool {
        guard unread.isEmpty else { return false }
        do {
            try fill()
            return false
        } catch {
            return (error as? Failure)?.reason != "receive: \(EAGAIN)"
        }
    }

    private func readHead() throws -> [String] {
        let separator = Data("\r\n\r\n".utf8)
        while true {
            if let end = Data(unread).range(of: separator) {
                let head = String(decoding: unread[..<end.lowerBound], as: UTF8.self)
                unread.removeFirst(end.upperBound)
                return head.components(separatedBy: "\r\n")
            }
            try fill()
        }
    }

    private func fill() throws {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
        guard count >= 0 else { throw Failure(reason: "receive: \(errno)") }
        guard count > 0 else { throw Failure(reason: "end") }
        unread += buffer.prefix(count)
    }
}

/// Runs blocking code on a separate thread, instead of the cooperative pool that other tests use.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
    }
}
