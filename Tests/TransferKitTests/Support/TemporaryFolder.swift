import Foundation
import SystemPackage

/// A folder that is deleted when this object is released.
final class TemporaryFolder: Sendable {
    let path: FilePath

    init() throws {
        path = FilePath(FileManager.default.temporaryDirectory.path).appending("transferkit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path.string)
    }

    func file(_ name: String, size: Int) throws -> FilePath {
        try file(name, Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }))
    }

    func file(_ name: String, _ content: Data) throws -> FilePath {
        let file = path.appending(name)
        try content.write(to: URL(fileURLWithPath: file.string))
        return file
    }
}
