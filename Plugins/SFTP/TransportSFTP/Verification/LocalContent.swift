import TransportSupport

/// A local file whose content is compared with the server's file or with a checksum.
struct LocalContent: Sendable {
    /// The size in bytes.
    let size: Int64
    /// Reads a range of the file. May block.
    let read: @Sendable (Range<Int64>) throws -> [UInt8]

    init(_ file: FileReader, size: Int64) {
        self.size = size
        read = { try file.bytes($0) }
    }

    init(_ file: FileWriter, size: Int64) {
        self.size = size
        read = { try file.bytes($0) }
    }

    /// - Throws: A `TransferError` if the file can't be read, or `CancellationError`.
    func checksum(_ algorithm: ChecksumAlgorithm, on threads: WorkerThreads) async throws -> Checksum {
        try await threads.checksum(algorithm, of: 0..<size, reading: read)
    }
}
