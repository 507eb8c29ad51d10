import Crypto
import Foundation
import SystemPackage
import TransferCore
import TransportSupport

/// A checksum algorithm of the protocol (tus 1.0.0, "Checksum").
enum ChecksumAlgorithm: String, CaseIterable, Sendable {
    /// In the order of preference. The last two detect transmission errors, not deliberate changes.
    case sha256, sha1, md5

    /// The best of a server's algorithms; nil without a known one.
    static func best(of names: [String]) -> ChecksumAlgorithm? {
        let names = Set(names.map { $0.lowercased() })
        return allCases.first { names.contains($0.rawValue) }
    }
}

/// A checksum of bytes so far.
struct ContentHash: Sendable {
    private enum State {
        case sha256(SHA256)
        case sha1(Insecure.SHA1)
        case md5(Insecure.MD5)
    }

    let algorithm: ChecksumAlgorithm
    private var state: State

    init(_ algorithm: ChecksumAlgorithm) {
        self.algorithm = algorithm
        state =
            switch algorithm {
            case .sha256: .sha256(SHA256())
            case .sha1: .sha1(Insecure.SHA1())
            case .md5: .md5(Insecure.MD5())
            }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        switch state {
        case .sha256(var hash):
            unsafe hash.update(bufferPointer: bytes)
            state = .sha256(hash)
        case .sha1(var hash):
            unsafe hash.update(bufferPointer: bytes)
            state = .sha1(hash)
        case .md5(var hash):
            unsafe hash.update(bufferPointer: bytes)
            state = .md5(hash)
        }
    }

    /// The checksum of all bytes so far.
    var digest: [UInt8] {
        switch state {
        case .sha256(let hash): Array(hash.finalize())
        case .sha1(let hash): Array(hash.finalize())
        case .md5(let hash): Array(hash.finalize())
        }
    }

    /// The value of `Upload-Checksum` (tus 1.0.0).
    var header: String { "\(algorithm.rawValue) \(Data(digest).base64EncodedString())" }

    /// The form of receipts.
    var text: String {
        let digits = Array("0123456789abcdef")
        return "\(algorithm.rawValue):" + String(digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
}

extension FileReader {
    /// How much is read at a time, so that cancellation is noticed in between.
    private static let hashedAtOnce: Int64 = 1 << 20

    /// Computes the checksum of a part of the file, and continues another one that started before it.
    ///
    /// - Throws: A ``TransferError`` if the file can't be read or ends early; `CancellationError`.
    func hash(
        _ range: Range<Int64>, with algorithm: ChecksumAlgorithm, alongside other: ContentHash?, on threads: WorkerThreads,
        progress: () -> Void
    ) async throws -> (hash: ContentHash, alongside: ContentHash?) {
        var hashes = (hash: ContentHash(algorithm), alongside: other)
        var position = range.lowerBound
        while position < range.upperBound {
            try Task.checkCancellation()
            let (start, count) = (position, min(Self.hashedAtOnce, range.upperBound - position))
            hashes = try await threads.runUnlessCancelled { [hashes] in
                var hashes = hashes
                let bytes = try self.read(at: start, count: Int(count))
                unsafe bytes.withUnsafeBytes { bytes in
                    unsafe hashes.hash.update(bytes)
                    unsafe hashes.alongside?.update(bytes)
                }
                return hashes
            }
            position += count
            progress()
        }
        return hashes
    }

    /// Reads a number of bytes, waiting for the disk.
    private func read(at offset: Int64, count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let read = try unsafe bytes.withUnsafeMutableBytes { buffer in
                do {
                    return try unsafe descriptor.read(
                        fromAbsoluteOffset: offset + Int64(filled), into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
                } catch {
                    throw TransferError(.sourceLost, .notReadable, "\(source.path) can't be read.", cause: "\(error)")
                }
            }
            guard read > 0 else { throw endedEarly(at: offset + Int64(filled)) }
            filled += read
        }
        return bytes
    }
}
