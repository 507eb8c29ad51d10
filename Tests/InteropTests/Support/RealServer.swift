import Foundation

/// A tus server that is not ours, as a process of its own.
final class RealServer {
    /// The package that it is of.
    enum Kind: String, CaseIterable, Sendable {
        /// All extensions. It buffers a PATCH, and stores nothing of one that was cut.
        case resumableUpload = "resumable_upload"
        /// Keeps what it received of a PATCH that was cut. Says what it can do only with a slash at the end of the address.
        case tuspyserver
        /// Says nothing of what it can do, stores under the name in the metadata, and forgets an upload once it is complete.
        case aiohttpTUS = "aiohttp_tus"

        var hasConcatenation: Bool { self != .aiohttpTUS }
        var takesContentInCreation: Bool { self != .aiohttpTUS }
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
    private let process: PythonProcess

    /// Starts the server, and returns when it listens.
    ///
    /// - Parameters:
    ///   - port: 0 for any free one.
    ///   - options: Further arguments for the server, as a JSON object.
    static func start(
        _ kind: Kind = .resumableUpload, in folder: URL, port: Int = 0, options: String = "{}"
    ) async throws -> RealServer {
        try await PythonProcess.start { try RealServer(kind, folder, port, options) }
    }

    private init(_ kind: Kind, _ folder: URL, _ port: Int, _ options: String) throws {
        self.kind = kind
        self.folder = folder
        process = try PythonProcess("\(kind.rawValue)_server.py", [folder.path, "\(port)", options])
    }

    var port: Int { process.port }

    var endpoint: String { endpoint(port: port) }

    /// The endpoint as it is reached by way of a relay.
    func endpoint(port: Int) -> String { "http://127.0.0.1:\(port)/files" + (kind == .tuspyserver ? "/" : "") }

    /// All requests, in the order in which their heads arrived, with what is known of their answers.
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

    /// What is stored of the upload with this URL, under this name.
    func content(of upload: String, named name: String) throws -> Data {
        let file = kind == .aiohttpTUS ? name : upload.split(separator: "/").last.map(String.init) ?? ""
        return try Data(contentsOf: folder.appending(path: "uploads").appending(path: file))
    }

    /// What is stored beside what the server knows of uploads.
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

    /// Stops the process where it is: it sees nothing of what happens from now on.
    func suspend() { process.suspend() }

    /// Ends the process at once, as a crash would.
    func kill() { process.kill() }
}
