import SystemPackage
package import TransferCore

extension FileReader {
    /// Reads a part of the file. Blocks.
    ///
    /// - Throws: A ``TransferError``: of the class ``FailureClass/sourceChanged`` if the file ends early.
    package func bytes(_ range: Range<Int64>) throws(TransferError) -> [UInt8] {
        let bytes: [UInt8]
        do { bytes = try descriptor.bytes(range) } catch { throw .sourceUnavailable(source.path, errno: error.rawValue) }
        guard Int64(bytes.count) == range.upperBound - range.lowerBound else {
            throw endedEarly(at: range.lowerBound + Int64(bytes.count))
        }
        return bytes
    }
}

extension FileWriter {
    /// Reads back a part of the part file; fewer bytes if it ends early. Blocks.
    package func bytes(_ range: Range<Int64>) throws(TransferError) -> [UInt8] {
        do {
            return try descriptor.bytes(range)
        } catch {
            throw TransferError(
                .permanent, .notReadable, "\(destination.partPath) can't be read back to verify the download.", cause: "\(error)")
        }
    }
}

extension WorkerThreads {
    /// How much is read at a time, so that cancellation is noticed in between.
    private static let pieceSize: Int64 = 1 << 20

    /// Reads a range piece by piece on these threads, and folds the pieces into a value, for example a ``RunningChecksum``.
    ///
    /// - Parameters:
    ///   - read: Reads a piece. Blocks.
    ///   - progress: Called before each piece.
    ///   - update: Adds a piece to the value. Called on these threads, in order.
    /// - Throws: The error of `read`; `CancellationError` at once when the task is cancelled.
    package func fold<Value: Sendable>(
        _ range: Range<Int64>, into value: Value, reading read: @escaping @Sendable (Range<Int64>) throws -> [UInt8],
        progress: () -> Void = {}, _ update: @escaping @Sendable (inout Value, [UInt8]) -> Void
    ) async throws -> Value {
        var value = value
        var position = range.lowerBound
        while position < range.upperBound {
            try Task.checkCancellation()
            progress()
            let piece = position..<min(range.upperBound, position + Self.pieceSize)
            value = try await runUnlessCancelled { [value] in
                var value = value
                update(&value, try read(piece))
                return value
            }
            position = piece.upperBound
        }
        return value
    }

    /// Computes the checksum of a range; as ``fold(_:into:reading:progress:_:)``.
    package func checksum(
        _ algorithm: ChecksumAlgorithm, of range: Range<Int64>, reading read: @escaping @Sendable (Range<Int64>) throws -> [UInt8],
        progress: () -> Void = {}
    ) async throws -> Checksum {
        try await fold(range, into: RunningChecksum(algorithm), reading: read, progress: progress) { $0.update($1) }.checksum
    }
}

extension FileDescriptor {
    /// Reads a range; fewer bytes if the file ends early. Blocks.
    fileprivate func bytes(_ range: Range<Int64>) throws(Errno) -> [UInt8] {
        let count = Int(range.upperBound - range.lowerBound)
        do {
            return try unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                let bytes = UnsafeMutableRawBufferPointer(buffer)
                while filled < count {
                    let read = try unsafe self.read(
                        fromAbsoluteOffset: range.lowerBound + Int64(filled),
                        into: UnsafeMutableRawBufferPointer(rebasing: bytes[filled...]))
                    guard read > 0 else { return }
                    filled += read
                }
            }
        } catch let error as Errno {
            throw error
        } catch {
            throw .ioError
        }
    }
}
