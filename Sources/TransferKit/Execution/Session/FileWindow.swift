/// Decides which files of a session may be in flight concurrently.
///
/// If the app sets ``SessionOptions/filesInFlight``, the window admits that number of files, at most 64, regardless of their size.
/// Otherwise, several small files may be in flight, because latency dominates their transfer time. Their number adapts to the
/// network and the server; see ``FileConcurrency``. A large file saturates the connection, so it is in flight alone, which also preserves the
/// order of completion.
package struct FileWindow: Sendable {
    /// The maximum size of a small file, in bytes.
    package static let smallSize: Int64 = 1 << 20
    /// The maximum number of files in flight.
    package static let maximumFiles = 64

    /// The number of small files that may be in flight.
    package var smallFiles: Int

    /// The number of additional small files to prepare; see ``TransferCore/Transport/smallFilesAhead``.
    package var smallFilesAhead = 0

    private var sizes: [Int64: Int64] = [:]

    package init(smallFiles: Int = 6) {
        self.smallFiles = smallFiles
    }

    package var isEmpty: Bool { sizes.isEmpty }

    /// Whether one more file of this size may start.
    ///
    /// - Parameter limit: The number that the app set, if any; see ``SessionOptions/filesInFlight``.
    package func admits(size: Int64, limit: Int?) -> Bool {
        if let limit { return sizes.count < min(max(limit, 1), Self.maximumFiles) }
        guard !sizes.isEmpty else { return true }
        let maximum = min(bounded(smallFiles, from: 1) + bounded(smallFilesAhead, from: 0), Self.maximumFiles)
        return sizes.count < maximum && size <= Self.smallSize && sizes.values.allSatisfy { $0 <= Self.smallSize }
    }

    private func bounded(_ number: Int, from minimum: Int) -> Int { min(max(number, minimum), Self.maximumFiles) }

    package mutating func insert(_ position: Int64, size: Int64) {
        sizes[position] = size
    }

    package mutating func setSize(of position: Int64, size: Int64) {
        if sizes[position] != nil { sizes[position] = size }
    }

    package mutating func remove(_ position: Int64) {
        sizes[position] = nil
    }
}
