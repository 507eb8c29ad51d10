import SystemPackage
import TransferCore
import TransportSupport

/// A local file that is compared with one on the server.
struct LocalContent: Sendable {
    /// In bytes.
    let size: Int64
    /// Reads a part of the file. Blocks.
    let read: @Sendable (Range<Int64>) throws -> [UInt8]

    /// How much is read at a time, so that cancellation is noticed in between.
    private static let readAtOnce: Int64 = 1 << 20

    /// An uploaded file.
    init(_ file: FileReader, size: Int64) {
        self.size = size
        read = { range in try file.piecesNow(range, of: range.count).first ?? [] }
    }

    /// The part file of a download.
    init(_ file: FileWriter, size: Int64) {
        self.size = size
        read = { range in
            do {
                return try unsafe [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
                    let bytes = UnsafeMutableRawBufferPointer(buffer)
                    while count < range.count {
                        let read = try unsafe file.descriptor.read(
                            fromAbsoluteOffset: range.lowerBound + Int64(count),
                            into: UnsafeMutableRawBufferPointer(rebasing: bytes[count...]))
                        guard read > 0 else { return }
                        count += read
                    }
                }
            } catch {
                throw TransferError(
                    .permanent, .notReadable, "\(file.destination.partPath) can't be read to compare it with the server's file.",
                    cause: "\(error)")
            }
        }
    }

    /// Computes the checksum of the whole file.
    ///
    /// - Throws: A `TransferError` if it can't be read; `CancellationError`.
    func digest(_ algorithm: ChecksumAlgorithm, on threads: WorkerThreads) async throws -> ContentDigest {
        var hash = ContentHash(algorithm)
        var position: Int64 = 0
        while position < size {
            try Task.checkCancellation()
            let range = position..<min(size, position + Self.readAtOnce)
            hash = try await threads.runUnlessCancelled { [hash] in
                var hash = hash
                hash.update(try read(range))
                return hash
            }
            position = range.upperBound
        }
        return hash.digest
    }
}
