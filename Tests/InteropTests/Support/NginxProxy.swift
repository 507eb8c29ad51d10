import Foundation

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
        get throws {
            try String(contentsOf: folder.appending(path: "access.log"), encoding: .utf8).split(separator: "\n").map { line in
                let words = line.split(separator: " ").map(String.init)
                return Request(
                    version: words[0], method: words[1], status: Int(words[2]) ?? 0, length: Int(words[3]) ?? 0, connection: words[4],
                    client: words[5])
            }
        }
    }
}
