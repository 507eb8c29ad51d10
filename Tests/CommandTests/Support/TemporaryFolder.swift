import Foundation
import SystemPackage

/// A temporary folder that is removed when this object is released.
final class TemporaryFolder: Sendable {
    let path: FilePath

    init() throws {
        let url = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent("transferq-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = FilePath(url.path)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path.string)
    }

    /// Creates a file of pseudorandom bytes, determined by the seed.
    @discardableResult
    func file(_ name: String, size: Int, seed: UInt64 = 1) throws -> FilePath {
        // Generates words of 8 bytes, because generating a hundred million single bytes would occupy a shared thread for half a minute.
        var generator = SplitMix(state: seed)
        let words = (0..<(size + 7) / 8).map { _ in generator.next().littleEndian }
        let file = try file(name, bytes: [])
        let descriptor = try FileDescriptor.open(file, .writeOnly)
        try descriptor.closeAfter {
            _ = try unsafe words.withUnsafeBytes { unsafe try descriptor.writeAll($0) }
            try descriptor.resize(to: Int64(size))
        }
        return file
    }

    /// Creates a sparse file of zeros, which takes no disk space.
    @discardableResult
    func sparseFile(_ name: String, size: Int64) throws -> FilePath {
        let file = try file(name, bytes: [])
        let descriptor = try FileDescriptor.open(file, .writeOnly)
        try descriptor.closeAfter { try descriptor.resize(to: size) }
        return file
    }

    @discardableResult
    func file(_ name: String, bytes: [UInt8]) throws -> FilePath {
        let file = path.appending(name)
        let descriptor = try FileDescriptor.open(file, .writeOnly, options: [.create, .truncate], permissions: [.ownerReadWrite])
        try descriptor.closeAfter { _ = try descriptor.writeAll(bytes) }
        return file
    }
}

/// The generator SplitMix64. Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (OOPSLA 2014).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
