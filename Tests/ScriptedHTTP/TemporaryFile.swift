package import SystemPackage
package import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A temporary file that is removed when this object is released.
package final class TemporaryFile: Sendable {
    package let path: FilePath

    /// Creates a file whose bytes depend on their position, so that tests detect shifted or rearranged content.
    package init(size: Int) throws {
        path = FilePath("\(getTemporaryFolder())/transferkit-test-\(getpid())-\(UInt64.random(in: 0 ... .max))")
        try write(Self.content(size: size))
    }

    deinit {
        _ = unsafe path.withPlatformString { unsafe unlink($0) }
    }

    /// The content that ``init(size:)`` writes.
    package static func content(size: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size + 256)
        // Appends blocks, because tests are built without optimization, and appending single bytes would take seconds for large content.
        for row in 0..<(size + 255) / 256 { bytes += rows[(row ^ (row >> 8)) & 0xFF] }
        return Array(bytes.prefix(size))
    }

    private static let rows = (0..<256).map { row in (0..<256).map { UInt8(row ^ $0) } }

    /// Replaces the content in place.
    package func write(_ bytes: [UInt8]) throws {
        let file = try FileDescriptor.open(path, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
        try file.closeAfter { _ = try file.writeAll(bytes) }
    }

    /// The file as an upload source of the queue.
    package var source: UploadSource {
        get throws { UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)) }
    }
}

private func getTemporaryFolder() -> String {
    unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
}
