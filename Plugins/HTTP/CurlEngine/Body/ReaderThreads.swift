package import TransportSupport

/// The threads that read files that are not in the page cache: some for each device, so that files on a disk that hangs keep nobody from
/// reading those on another.
package struct ReaderThreads: Sendable {
    /// Whether what is in the page cache needs no thread. The system may bring a file there at any time, also because it was just asked whether
    /// it is there.
    let areSparedCachedFiles: Bool
    private let find: @Sendable (FileReader) -> WorkerThreads

    /// Finds the threads for a file by a rule; called on the engine's thread.
    ///
    /// - Parameter areSparedCachedFiles: Whether the engine's thread reads by itself what is in the page cache.
    package init(areSparedCachedFiles: Bool = true, _ find: @escaping @Sendable (FileReader) -> WorkerThreads) {
        self.areSparedCachedFiles = areSparedCachedFiles
        self.find = find
    }

    /// - Parameter limit: How many threads a device may have.
    init(perDevice limit: Int) {
        let disks = DiskThreads(limit: limit)
        self.init { disks.threads(for: $0.source) }
    }

    func threads(for file: FileReader) -> WorkerThreads { find(file) }
}
