import SystemPackage
package import TransferCore

extension FileReader {
    /// Reads a range of the file. Blocks.
    ///
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/sourceChanged`` if the file ends early.
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
    /// Reads back a range of the part file. Returns fewer bytes if the file ends early. Blocks.
    ///
    /// - Throws: A ``TransferError`` if the file can't be read.
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
    /// The number of bytes that are read between two checks for cancellation.
    private static let blockSize: Int64 = 1 << 20

    /// Reads a range in blocks on these threads, and folds the blocks into a value, for example a ``RunningChecksum``.
    ///
    /// - Parameters:
    ///   - read: Reads a block of at most 1 MiB. Called on these threads.
    ///   - progress: Called before each block, on the caller's executor.
    ///   - update: Adds a block to the value. Called on these threads, in order.
    /// - Throws: The error of `read`; `CancellationError` immediately when the task is cancelled.
    package func fold<Value: Sendable>(
        _ range: Range<Int64>, into value: Value, reading read: @escaping @Sendable (Range<Int64>) throws -> [UInt8],
        progress: () -> Void = {}, _ update: @escaping @Sendable (inout Value, [UInt8]) -> Void
    ) async throws -> Value {
        var value = value
        var position = range.lowerBound
        while position < range.upperBound {
            try Task.checkCancellation()
            progress()
            let block = position..<min(range.upperBound, position + Self.blockSize)
            value = try await runUnlessCancelled { [value] in
                var value = value
                update(&value, try read(block))
                return value
            }
            position = block.upperBound
        }
        return value
    }

    /// Computes the checksum of a range. For the parameters, see ``fold(_:into:reading:progress:_:)``.
    package func checksum(
        _ algorithm: ChecksumAlgorithm, of range: Range<Int64>, reading read: @escaping @Sendable (Range<Int64>) throws -> [UInt8],
        progress: () -> Void = {}
    ) async throws -> Checksum {
        try await fold(range, into: RunningChecksum(algorithm), reading: read, progress: progress) { $0.update($1) }.checksum
    }
}

extension FileDescriptor {
    /// Reads a range. Returns fewer bytes if the file ends early. Blocks.
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
