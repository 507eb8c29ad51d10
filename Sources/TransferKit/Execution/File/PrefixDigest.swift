import Foundation
import SystemPackage
import TransferCore

/// A digest of samples of a file's confirmed bytes. If another file with the same size and modification time replaces the file, the digest
/// usually shows whether the new file begins with the same bytes.
///
/// The digest covers the first and the last 64 KiB of the bytes that were confirmed when the checkpoint was saved. A digest of all bytes
/// would require reading the file twice. Changes that lie only between the two samples are missed. FNV-1a with 64 bits detects accidental
/// changes, but not deliberate changes by the owner of the file.
enum PrefixDigest {
    private static let sampleSize = 64 << 10

    /// Reads and hashes the samples; nil if the file can't be read or is no longer the file that was sent. Runs on a thread that may block.
    static func make(of source: UploadSource, confirmed: Int64, for context: RunContext) async -> String? {
        await context.readLocally(source.path) { try? read(source, confirmed: confirmed) }
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
