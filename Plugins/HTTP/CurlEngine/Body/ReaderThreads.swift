package import TransportSupport

/// The threads that read files outside the page cache: separate ones for each device, so a disk that hangs does not delay files on another.
package struct ReaderThreads: Sendable {
    /// Whether the engine's thread reads cached files itself. The system can cache a file at any time, even because of the check.
    let skipsCachedFiles: Bool
    private let find: @Sendable (FileReader) -> WorkerThreads

    /// Creates reader threads from a rule, which is called on the engine's thread.
    ///
    /// - Parameter skipsCachedFiles: Whether the engine's thread reads cached files itself.
    package init(skipsCachedFiles: Bool = true, _ find: @escaping @Sendable (FileReader) -> WorkerThreads) {
        self.skipsCachedFiles = skipsCachedFiles
        self.find = find
    }

    /// - Parameter limit: The number of threads per device.
    init(perDevice limit: Int) {
        let disks = DiskThreads(limit: limit)
        self.init { disks.threads(for: $0.source) }
    }

    func threads(for file: FileReader) -> WorkerThreads { find(file) }
}
