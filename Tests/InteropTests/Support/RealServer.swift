import Foundation
import ProcessFixture
import ScriptedHTTP

/// An independent tus server in its own process.
final class RealServer {
    /// The Python package of the server.
    enum Kind: String, CaseIterable, Sendable {
        /// Supports all extensions. Buffers each PATCH, and stores no bytes of an interrupted PATCH.
        case resumableUpload = "resumable_upload"
        /// Keeps the received bytes of an interrupted PATCH. Reports its features only if the address ends with a slash.
        case tuspyserver
        /// Does not report its features, names files by the metadata, and forgets an upload as soon as it is complete.
        case aiohttpTUS = "aiohttp_tus"

        var hasConcatenation: Bool { self != .aiohttpTUS }
        var acceptsContentInCreation: Bool { self != .aiohttpTUS }
    }

    struct Request: Decodable {
        var number: Int
        var method: String?
        var path: String?
        var offset: String?
        var metadata: String?
        var status: Int?
        var answeredOffset: String?
        var location: String?
        var concat: String?
    }

    let kind: Kind
    let folder: URL
    /// The server's port. The port stays reserved after the server is killed, so that the restarted server can use it.
    let reservedPort: ReservedPort
    private let process: PythonProcess

    /// - Parameters:
    ///   - port: The port of a killed server, to be reused, or nil for a free port.
    ///   - options: Additional arguments for the server, as a JSON object.
    static func start(
        _ kind: Kind = .resumableUpload, in folder: URL, port: ReservedPort? = nil, options: String = "{}"
    ) async throws -> RealServer {
        try await PythonProcess.runBlocking { try RealServer(kind, folder, port, options) }
    }

    private init(_ kind: Kind, _ folder: URL, _ port: ReservedPort?, _ options: String) throws {
        self.kind = kind
        self.folder = folder
        reservedPort = try port ?? ReservedPort()
        process = try PythonProcess("\(kind.rawValue)_server.py", [folder.path, "\(reservedPort.port)", options])
    }

    var port: Int { process.port }

    var endpoint: String { endpoint(port: port) }

    /// The endpoint's address through the given port, such as a relay's.
    func endpoint(port: Int) -> String { "http://127.0.0.1:\(port)/files" + (kind == .tuspyserver ? "/" : "") }

    /// All requests in the order of arrival, with their responses, if any.
    var requests: [Request] {
        get throws {
            let text = try String(contentsOf: folder.appending(path: "requests.jsonl"), encoding: .utf8)
            var requests: [Int: Request] = [:]
            for line in text.split(separator: "\n") {
                let entry = try JSONDecoder().decode(Request.self, from: Data(line.utf8))
                if entry.method != nil {
                    requests[entry.number] = entry
                } else {
                    requests[entry.number]?.status = entry.status
                    requests[entry.number]?.answeredOffset = entry.answeredOffset
                    requests[entry.number]?.location = entry.location
                }
            }
            return requests.values.sorted { $0.number < $1.number }
        }
    }

    /// The stored content of the upload with this URL and name.
    func content(of upload: String, named name: String) throws -> Data {
        let file = kind == .aiohttpTUS ? name : upload.split(separator: "/").last.map(String.init) ?? ""
        return try Data(contentsOf: folder.appending(path: "uploads").appending(path: file))
    }

    /// All stored files except the server's own bookkeeping files.
    var storedFiles: [String] {
        get throws {
            let uploads = folder.appending(path: "uploads")
            let names = try FileManager.default.subpathsOfDirectory(atPath: uploads.path)
            return names.filter { name in
                var isFolder: ObjCBool = false
                return unsafe FileManager.default.fileExists(atPath: uploads.appending(path: name).path, isDirectory: &isFolder)
                    && !isFolder.boolValue && !name.contains(".locks/") && !name.hasSuffix(".info") && !name.contains(".metadata/")
            }
        }
    }

    func suspend() { process.suspend() }

    func kill() { process.kill() }
}
