import Foundation
import Glibc

/// The tus server of the package resumable-upload, as a process of its own. It buffers a PATCH, and stores nothing of one that was cut.
final class ResumableUploadServer {
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

    struct Missing: Error, CustomStringConvertible {
        var description: String
    }

    let folder: URL
    let port: Int
    private let process = Process()

    /// Starts the server, and returns when it listens.
    ///
    /// - Parameters:
    ///   - port: 0 for any free one.
    ///   - options: Further arguments for the server, as a JSON object.
    static func start(in folder: URL, port: Int = 0, options: String = "{}") async throws -> ResumableUploadServer {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try ResumableUploadServer(folder, port, options) })
            }
        }
    }

    private init(_ folder: URL, _ port: Int, _ options: String) throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let python = tests.deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build/servers/bin/python")
        guard FileManager.default.isExecutableFile(atPath: python.path) else {
            throw Missing(description: "\(python.path) is missing: Tests/run makes it. Run that once.")
        }
        self.folder = folder
        let output = Pipe()
        process.executableURL = python
        process.arguments = [tests.appending(path: "Servers/resumable_upload_server.py").path, folder.path, "\(port)", options]
        process.standardOutput = output
        // It complains of each connection that breaks.
        process.standardError = FileHandle.nullDevice
        try process.run()
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        guard let port = Int(line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw Missing(description: "The server of resumable-upload did not start.")
        }
        self.port = port
    }

    var endpoint: String { "http://127.0.0.1:\(port)/files" }

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

    /// What is stored of the upload with this URL.
    func content(of upload: String) throws -> Data {
        try Data(contentsOf: folder.appending(path: "uploads").appending(path: upload.split(separator: "/").last.map(String.init) ?? ""))
    }

    /// Ends the process at once, as a crash would.
    func kill() {
        _ = Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    deinit {
        if process.isRunning { kill() }
    }
}
