import Foundation
import SystemPackage
import TUSLoopback

let offsetStream = "application/offset+octet-stream"

/// Runs a test with a server and a temporary folder. The test may block, because it runs on a separate thread.
func withServer(
    _ options: LoopbackOptions = LoopbackOptions(), _ body: @escaping @Sendable (TUSLoopbackServer, URL) throws -> Void
) async throws {
    try await withFolder { folder in
        let server = TUSLoopbackServer(folder: folder, options: options)
        let url = try await server.start()
        let result = await Result { try await onThread { try body(server, url) } }
        await server.stop()
        try result.get()
    }
}

func withFolder(_ body: (FilePath) async throws -> Void) async throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "tus-loopback-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: url) }
    try await body(FilePath(url.path))
}

extension Result where Failure == any Error {
    init(catching body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

extension RawConnection {
    /// Creates an upload and returns its path.
    func createUpload(length: Int, metadata: String? = nil) throws -> String {
        var headers = ["Upload-Length": String(length)]
        headers["Upload-Metadata"] = metadata
        let response = try request("POST", "/files/", headers)
        guard response.status == 201, let location = response.headers["location"], let path = URL(string: location)?.path else {
            throw Failure(reason: "POST: \(response)")
        }
        return path
    }

    func patch(_ path: String, at offset: Int, _ body: Data) throws -> Response {
        try request("PATCH", path, ["Upload-Offset": String(offset), "Content-Type": offsetStream], body: body)
    }

    /// Sends a PATCH request without reading the response. The request may announce more bytes than it sends.
    func startPatch(_ path: String, at offset: Int, announcing length: Int, _ body: Data) throws {
        try sendHead("PATCH", path, ["Upload-Offset": String(offset), "Content-Type": offsetStream, "Content-Length": String(length)])
        try send(body)
    }

    /// Returns the offset in the response to a HEAD request.
    func offset(_ path: String) throws -> Int? {
        try request("HEAD", path).headers["upload-offset"].flatMap(Int.init)
    }
}

func bytes(_ count: Int) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
}

func read(_ file: FilePath) throws -> Data {
    try Data(contentsOf: URL(filePath: file.string))
}

extension FilePath {
    func with(extension name: String) -> FilePath {
        var path = self
        path.extension = name
        return path
    }
}

extension TUSLoopbackServer {
    /// Returns the stored content of all uploads with a filename.
    func contents(named filename: String) throws -> [Data] {
        try storedFiles(named: filename).map(read)
    }
}
