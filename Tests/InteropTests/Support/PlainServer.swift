import Foundation
import SystemPackage
import TransferCore

/// A server that is not ours and speaks plain HTTP, as a process of its own: Debian's nginx that takes files by PUT, or a form handler in Flask.
final class PlainServer {
    enum Kind: String, CaseIterable, Sendable {
        case put
        case form
    }

    /// What can be known of the server while this object lives.
    let site: PlainSite
    private let process: PythonProcess

    /// Starts it, and returns when it listens.
    ///
    /// - Parameter largestBody: How many bytes a request may bring.
    static func start(_ kind: Kind, in folder: URL, largestBody: Int = 1 << 30) async throws -> PlainServer {
        try await PythonProcess.start { try PlainServer(kind, folder, largestBody) }
    }

    private init(_ kind: Kind, _ folder: URL, _ largestBody: Int) throws {
        process = try PythonProcess(kind == .put ? "nginx_put.py" : "form_server.py", [folder.path, "\(largestBody)"])
        site = PlainSite(kind: kind, port: process.port, folder: folder)
    }

    var port: Int { site.port }

    func address() -> String { site.address(port: port) }

    func content(of path: RemotePath) throws -> Data? { try site.content(of: path) }
}

/// Where a ``PlainServer`` is, and what it has.
struct PlainSite: Sendable {
    let kind: PlainServer.Kind
    let port: Int
    let folder: URL

    /// The address to send files to, reached by way of a port.
    func address(port: Int) -> String {
        switch kind {
        case .put: "http+put://127.0.0.1:\(port)/"
        case .form: "http+form://127.0.0.1:\(port)/upload?path={path}"
        }
    }

    /// As the form handler names files: with a slash after each 100 bytes, as file systems have a limit.
    private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
        bytes.enumerated().flatMap { index, byte in
            Array(((index > 0 && index.isMultiple(of: 100) ? "/" : "") + (byte < 16 ? "0" : "") + String(byte, radix: 16)).utf8)
        }
    }

    /// What it has of a file; it takes none that is not complete.
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
