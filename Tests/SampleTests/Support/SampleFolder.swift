import Foundation

/// A temporary folder for the files and the queue of a sample. The folder is removed when this object is released.
final class SampleFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "transferkit-sample-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    /// The standard error of the last sample that ran with this folder.
    var errors: String { (try? String(contentsOf: url.appending(path: "errors"), encoding: .utf8)) ?? "" }

    /// Creates a file and its folder. The bytes depend on the name and the position.
    @discardableResult func file(_ name: String, size: Int) throws -> URL {
        let file = url.appending(path: name)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        let pattern = Data((0..<251).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ name.utf8.reduce(0) { $0 &+ Int($1) }) })
        var content = Data(capacity: size)
        while content.count < size { content += pattern.prefix(size - content.count) }
        try content.write(to: file)
        return file
    }

    /// Whether two files have the same content. Returns false if a file is missing.
    static func equal(_ first: URL, _ second: URL) -> Bool {
        FileManager.default.contentsEqual(atPath: first.path, andPath: second.path)
    }
}
