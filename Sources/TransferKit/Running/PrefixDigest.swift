import Foundation
import SystemPackage
import TransferCore

/// Tells whether a file that replaced another of the same size and modification time begins with the bytes that were sent of the other.
///
/// Made of the first and the last 64 KiB of what is confirmed, as the file was when the checkpoint was saved: the whole of it would have to be
/// read a second time. So it does not tell a file apart whose size, modification time (in nanoseconds) and both ends are the same and that
/// differs only in between. FNV-1a with 64 bits: it guards against accidents, not against the owner of the file.
enum PrefixDigest {
    private static let sampleSize = 64 << 10

    /// Reads the samples and hashes them; nil if the file at the path is no longer the one that was sent. On a thread that may wait for the disk.
    static func make(of source: UploadSource, confirmed: Int64) async -> String? {
        await DiskThread.run { try? read(source, confirmed: confirmed) }
    }

    private static func read(_ source: UploadSource, confirmed: Int64) throws -> String? {
        let file = try source.open()
        defer { try? file.close() }
        guard try SourceIdentity(of: file, path: source.path).difference(from: source.identity) == nil else { return nil }
        let count = min(Int64(sampleSize), confirmed)
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for offset in [0, confirmed - count] {
            for byte in try sample(file, at: offset, count: Int(count)) {
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
            }
        }
        return "fnv1a64:\(confirmed):\(String(hash, radix: 16))"
    }

    private static func sample(_ file: FileDescriptor, at offset: Int64, count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try unsafe bytes.withUnsafeMutableBytes { buffer in
            var filled = 0
            while filled < count {
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                let read = try unsafe file.read(fromAbsoluteOffset: offset + Int64(filled), into: rest)
                guard read > 0 else { throw Errno.ioError }
                filled += read
            }
        }
        return bytes
    }
}
