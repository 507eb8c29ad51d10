import Foundation

/// Debian's nginx in front of a server: TLS with HTTP/1.1 and HTTP/2, and request bodies kept back until they are whole.
final class NginxProxy {
    struct Request {
        var version: String
        var method: String
        var status: Int
        /// With the headers.
        var length: Int
    }

    private let folder: URL
    private let process: PythonProcess

    /// Starts it, and returns when it listens.
    ///
    /// - Parameter largestBody: In nginx's words, for example `1m`.
    static func start(in folder: URL, before port: Int, largestBody: String) async throws -> NginxProxy {
        try await PythonProcess.start { try NginxProxy(folder, port, largestBody) }
    }

    private init(_ folder: URL, _ port: Int, _ largestBody: String) throws {
        self.folder = folder
        process = try PythonProcess("nginx_proxy.py", [folder.path, "\(port)", largestBody])
    }

    var port: Int { process.port }
    var certificate: String { folder.appending(path: "certificate.pem").path }

    /// All requests that were answered, in the order of that.
    var requests: [Request] {
        get throws {
            try String(contentsOf: folder.appending(path: "access.log"), encoding: .utf8).split(separator: "\n").map { line in
                let words = line.split(separator: " ").map(String.init)
                return Request(version: words[0], method: words[1], status: Int(words[2]) ?? 0, length: Int(words[3]) ?? 0)
            }
        }
    }
}
