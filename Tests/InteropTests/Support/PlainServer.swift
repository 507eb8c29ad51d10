import Foundation
import ProcessFixture
import SystemPackage
import TransferCore

/// An independent plain HTTP server in a separate process: Debian's nginx, which receives files by PUT, or a form handler in Flask.
final class PlainServer {
    enum Kind: String, CaseIterable, Sendable {
        case put
        case form
    }

    /// The server's address and files. Valid while this object exists.
    let site: PlainSite
    private let process: PythonProcess

    /// - Parameter largestBody: The maximum number of bytes in a request body.
    static func start(_ kind: Kind, in folder: URL, largestBody: Int = 1 << 30) async throws -> PlainServer {
        try await PythonProcess.runBlocking { try PlainServer(kind, folder, largestBody) }
    }

    private init(_ kind: Kind, _ folder: URL, _ largestBody: Int) throws {
        process = try PythonProcess(kind == .put ? "nginx_put.py" : "form_server.py", [folder.path, "\(largestBody)"])
        site = PlainSite(kind: kind, port: process.port, folder: folder)
    }

    var port: Int { site.port }

    func address() -> String { site.address(port: port) }

    func content(of path: RemotePath) throws -> Data? { try site.content(of: path) }
}

struct PlainSite: Sendable {
    let kind: PlainServer.Kind
    let port: Int
    let folder: URL

    /// The address for uploads through the given port, such as a relay's.
    func address(port: Int) -> String {
        switch kind {
        case .put: "http+put://127.0.0.1:\(port)/"
        case .form: "http+form://127.0.0.1:\(port)/upload?path={path}"
        }
    }

    /// The form handler's name for a file: its path in hexadecimal. A slash follows every 100 bytes, because file systems limit the length
    /// of names.
    private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
        bytes.enumerated().flatMap { index, byte in
            Array(((index > 0 && index.isMultiple(of: 100) ? "/" : "") + (byte < 16 ? "0" : "") + String(byte, radix: 16)).utf8)
        }
    }

    /// The content of a file, or nil if the server has not received it completely.
    func content(of path: RemotePath) throws -> Data? {
        let root = FilePath(folder.appending(path: "files").path)
        let name = kind == .put ? path.bytes : Self.hexadecimal(path.bytes)
        guard let file = try? FileDescriptor.open(root.pushing(FilePath(bytes: name)), .readOnly) else { return nil }
        return try file.closeAfter {
            var content = Data()
            var buffer = [UInt8](repeating: 0, count: 1 << 20)
            while true {
                let count = try unsafe buffer.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
                guard count > 0 else { return content }
                content += buffer[..<count]
            }
        }
    }
}
