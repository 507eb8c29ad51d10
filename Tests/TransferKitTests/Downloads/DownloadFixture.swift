import Foundation
import SystemPackage
import TransferCore
import TransferKit
import TransportTesting

struct DownloadFixture {
    let queue: QueueFixture
    let target: FilePath
    var memory: MemoryTransport { queue.memory }

    init() throws {
        queue = try QueueFixture()
        target = queue.folder.path.appending("target")
        try FileManager.default.createDirectory(atPath: target.string, withIntermediateDirectories: false)
    }

    static func content(_ size: Int, seed: Int = 7) -> Data {
        Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ seed) })
    }

    /// Creates files of `size` bytes each on the server, and returns a request to download them.
    func request(_ names: String..., size: Int = 10_000, options: SessionOptions = SessionOptions()) throws -> SessionRequest {
        for name in names { memory.provide(Self.content(size), as: name) }
        return try .download(names.map { try RemotePath($0) }, from: "a", to: target, options: options)
    }

    /// The sorted relative paths of all files and folders below the target folder.
    func names() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: target.string).sorted()
    }

    func partFiles() throws -> [String] { try names().filter { $0.hasSuffix(".part") } }

    func content(_ name: String) -> Data? { try? Data(contentsOf: URL(filePath: target.appending(name).string)) }
}
