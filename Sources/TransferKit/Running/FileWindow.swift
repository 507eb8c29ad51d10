/// Which files of a session may be in flight together.
///
/// With a number given by the app, that many, whatever their size. Without: as many small ones as the transport wants, whose time goes into
/// waiting for answers; a large one fills the connection by itself, so it waits until it is alone and nothing starts beside it, which also
/// keeps what is done in order.
package struct FileWindow: Sendable {
    /// The largest file that is small, in bytes.
    package static let smallSize: Int64 = 1 << 20
    private static let mostFiles = 64

    /// How many small files the transport wants in flight; see ``TransferCore/Transport/smallFilesInFlight``.
    package var smallFiles: Int

    /// How many more may be prepared; see ``TransferCore/Transport/smallFilesAhead``.
    package var smallFilesAhead = 0

    private var sizes: [Int64: Int64] = [:]

    package init(smallFiles: Int = 6) {
        self.smallFiles = smallFiles
    }

    package var isEmpty: Bool { sizes.isEmpty }

    /// Whether one more file of this size may start.
    ///
    /// - Parameter limit: What the app wants; see ``SessionOptions/filesInFlight``.
    package func admits(size: Int64, limit: Int?) -> Bool {
        if let limit { return sizes.count < min(max(limit, 1), Self.mostFiles) }
        guard !sizes.isEmpty else { return true }
        return sizes.count < min(max(smallFiles, 1) + max(smallFilesAhead, 0), Self.mostFiles) && size <= Self.smallSize
            && sizes.values.allSatisfy { $0 <= Self.smallSize }
    }

    package mutating func insert(_ position: Int64, size: Int64) {
        sizes[position] = size
    }

    /// The size of a file in flight turned out.
    package mutating func learn(_ position: Int64, size: Int64) {
        if sizes[position] != nil { sizes[position] = size }
    }

    package mutating func remove(_ position: Int64) {
        sizes[position] = nil
    }
}
