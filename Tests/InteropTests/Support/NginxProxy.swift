import Foundation
import Glibc
import ProcessFixture

/// Debian's nginx in front of a server, with TLS, HTTP/1.1 and HTTP/2. By default, nginx buffers each request body until it is complete.
final class NginxProxy {
    /// Differences from the default configuration.
    struct Options: Encodable {
        /// Whether nginx forwards request bodies as they arrive.
        var streams = false
        /// The time in seconds for which nginx waits for the server.
        var readTimeout = 60
        /// The time in seconds for which nginx waits for more of a request's body.
        var bodyTimeout = 60
        /// A file with the accepted client certificates.
        var clients: String?
        /// nginx's `ssl_verify_client`: `optional` also admits clients without a certificate.
        var asks = "on"
        /// The origin that replaces the server's origin in `Location` headers.
        var location: String?
        /// Whether to replace `http` with `https` in `Location` headers, for servers that do not know their public address.
        var secures = false
        /// The origin to which all requests are redirected; nil for no redirect.
        var redirect: String?
    }

    struct Request {
        var version: String
        var method: String
        var status: Int
        /// The number of received bytes, including the headers.
        var length: Int
        /// The same value for all requests of one connection.
        var connection: String
        /// `SUCCESS` for a client with a trusted certificate, `NONE` for a client without a certificate.
        var client: String
    }

    private let folder: URL
    private let process: PythonProcess

    /// - Parameter largestBody: The maximum size of a request body in nginx's notation, for example `1m`.
    static func start(
        in folder: URL, forwardingTo port: Int, largestBody: String = "100m", options: Options = Options()
    ) async throws -> NginxProxy {
        try await PythonProcess.runBlocking { try NginxProxy(folder, port, largestBody, options) }
    }

    private init(_ folder: URL, _ port: Int, _ largestBody: String, _ options: Options) throws {
        self.folder = folder
        let options = String(decoding: try JSONEncoder().encode(options), as: UTF8.self)
        process = try PythonProcess("nginx_proxy.py", [folder.path, "\(port)", largestBody, options])
    }

    var port: Int { process.port }
    var origin: String { "https://127.0.0.1:\(port)" }
    var certificate: String { folder.appending(path: "certificate.pem").path }

    /// All requests to which nginx has responded, in the order of the responses.
    var requests: [Request] {
        get async throws {
            let port = UInt16(port)
            try await PythonProcess.runBlocking { try Self.awaitLog(port) }
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

    /// Waits until nginx has logged all requests to which it has responded. nginx logs a request only after it has sent the response. This method
    /// waits for the response to one more request, which nginx rejects because it lacks TLS. nginx has one thread, so its log then contains all
    /// earlier requests.
    private static func awaitLog(_ port: UInt16) throws {
        struct NoResponse: Error {}
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
        var response: UInt8 = 0
        guard isConnected, unsafe send(connection, request, request.count, CInt(MSG_NOSIGNAL)) == request.count,
            unsafe recv(connection, &response, 1, 0) == 1
        else { throw NoResponse() }
    }
}
