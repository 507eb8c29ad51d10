import Foundation
import SystemPackage

/// A folder of a test's own, gone with this object.
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

    /// Makes a file of bytes that are the same for the same seed, and no others.
    @discardableResult
    func file(_ name: String, size: Int, seed: UInt64 = 1) throws -> FilePath {
        var generator = SplitMix(state: seed)
        var bytes = [UInt8]()
        bytes.reserveCapacity(size + 8)
        while bytes.count < size {
            let word = generator.next()
            for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift))) }
        }
        return try file(name, bytes: Array(bytes.prefix(size)))
    }

    /// Makes a file of zeros that takes no space.
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

/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (OOPSLA 2014).
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
