import Foundation
import Glibc

/// Debian's nginx in front of a server: TLS with HTTP/1.1 and HTTP/2, and request bodies kept back until they are whole, unless it is told otherwise.
final class NginxProxy {
    /// What is different from the usual.
    struct Options: Encodable {
        /// Whether bodies are passed on as they come.
        var streams = false
        /// A file with the certificates that clients may have.
        var clients: String?
        /// In nginx's words, how clients are asked for one: `optional` lets those without in.
        var asks = "on"
        /// The origin that uploads are said to be at, by their `Location`.
        var location: String?
        /// Whether an `http` address in a `Location` is one of `https` for clients: for servers that do not know how they are reached.
        var secures = false
        /// The origin that all requests are redirected to.
        var redirect: String?
    }

    struct Request {
        var version: String
        var method: String
        var status: Int
        /// With the headers.
        var length: Int
        /// The same number for all requests that came by one connection.
        var connection: String
        /// `SUCCESS` for a client with a certificate that is trusted, `NONE` for one without.
        var client: String
    }

    private let folder: URL
    private let process: PythonProcess

    /// Starts it, and returns when it listens.
    ///
    /// - Parameter largestBody: In nginx's words, for example `1m`.
    static func start(
        in folder: URL, before port: Int, largestBody: String = "100m", options: Options = Options()
    ) async throws -> NginxProxy {
        try await PythonProcess.start { try NginxProxy(folder, port, largestBody, options) }
    }

    private init(_ folder: URL, _ port: Int, _ largestBody: String, _ options: Options) throws {
        self.folder = folder
        let options = String(decoding: try JSONEncoder().encode(options), as: UTF8.self)
        process = try PythonProcess("nginx_proxy.py", [folder.path, "\(port)", largestBody, options])
    }

    var port: Int { process.port }
    var origin: String { "https://127.0.0.1:\(port)" }
    var certificate: String { folder.appending(path: "certificate.pem").path }

    /// All requests that were answered, in the order of that.
    var requests: [Request] {
        get async throws {
            let port = UInt16(port)
            try await PythonProcess.start { try Self.awaitLog(port) }
            return try String(contentsOf: folder.appending(path: "access.log"), encoding: .utf8).split(separator: "\n").compactMap { line in
                let words = line.split(separator: " ").map(String.init)
                guard words[1] != Self.marker else { return nil }
                return Request(
                    version: words[0], method: words[1], status: Int(words[2]) ?? 0, length: Int(words[3]) ?? 0, connection: words[4],
                    client: words[5])
            }
        }
    }

    private static let marker = "MARK"

    /// Returns once nginx has answered one more request, for which it needs no TLS, as that is refused. What it answered before is in its log
    /// then, as it has one thread; a request is logged after its answer has gone out.
    private static func awaitLog(_ port: UInt16) throws {
        struct NoAnswer: Error {}
        let connection = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        defer { Glibc.close(connection) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        let isConnected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(connection, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        let request = Array("\(marker) / HTTP/1.0\r\n\r\n".utf8)
        var answer: UInt8 = 0
        guard isConnected, unsafe send(connection, request, request.count, CInt(MSG_NOSIGNAL)) == request.count,
            unsafe recv(connection, &answer, 1, 0) == 1
        else { throw NoAnswer() }
    }
}
