package import TransportSupport

/// The threads that read file content that is not in the page cache. Each device has separate threads, so a hanging disk does not delay files on
/// other devices.
package struct ReaderThreads: Sendable {
    /// Whether the engine's thread reads cached bytes itself. Tests set it to false, so that reader threads read all bytes, even those that the
    /// system happens to cache.
    let readsCachedFilesDirectly: Bool
    private let find: @Sendable (FileReader) -> WorkerThreads

    /// - Parameter find: Returns the threads for a file. Called on the engine's thread.
    package init(readsCachedFilesDirectly: Bool = true, _ find: @escaping @Sendable (FileReader) -> WorkerThreads) {
        self.readsCachedFilesDirectly = readsCachedFilesDirectly
        self.find = find
    }

    /// - Parameter limit: The maximum number of threads per device.
    init(perDevice limit: Int) {
        let disks = DiskThreads(limit: limit)
        self.init { disks.threads(for: $0.source) }
    }

    func threads(for file: FileReader) -> WorkerThreads { find(file) }
}
