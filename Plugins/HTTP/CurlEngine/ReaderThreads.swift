import TransferCore
package import TransportSupport

/// The threads that read files that are not in the page cache: some for each device, so that files on a disk that hangs keep nobody from
/// reading those on another.
package struct ReaderThreads: Sendable {
    private let find: @Sendable (FileReader) -> WorkerThreads

    /// Finds the threads for a file by a rule; called on the engine's thread.
    package init(_ find: @escaping @Sendable (FileReader) -> WorkerThreads) {
        self.find = find
    }

    /// - Parameter limit: How many threads a device may have.
    init(perDevice limit: Int) {
        let devices = Locked<[UInt64: WorkerThreads]>([:])
        find = { file in
            devices.withLock { devices in
                let device = file.source.identity.device
                let threads = devices[device] ?? WorkerThreads(limit: limit)
                devices[device] = threads
                return threads
            }
        }
    }

    func threads(for file: FileReader) -> WorkerThreads { find(file) }
}
