import Locking
package import SystemPackage
package import TransferCore

/// The threads for blocking disk calls. Each device of a source and each destination folder has its own threads. A disk that hangs then does not
/// block transfers on other disks.
package final class DiskThreads: Sendable {
    private enum Disk: Hashable {
        case device(UInt64)
        /// A folder. Its device stays unknown, because a query for the device could hang as well.
        case folder(FilePath)
    }

    /// A weak reference to the threads of a disk. Unused threads therefore end, so new folders do not add threads without limit.
    private struct WeakThreads {
        weak let threads: WorkerThreads?
    }

    private let limit: Int
    private let threadsByDisk = Locked<[Disk: WeakThreads]>([:])

    /// - Parameter limit: The maximum number of threads per device or folder.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Returns the threads for reading the source of an upload.
    package func threads(for source: UploadSource) -> WorkerThreads { threads(.device(source.identity.device)) }

    /// Returns the threads for writing the destination of a download.
    package func threads(for destination: DownloadDestination) -> WorkerThreads { threads(.folder(destination.root)) }

    /// Returns the threads for files in a folder.
    package func threads(forFilesIn folder: FilePath) -> WorkerThreads { threads(.folder(folder)) }

    private func threads(_ disk: Disk) -> WorkerThreads {
        threadsByDisk.withLock { threadsByDisk in
            if let threads = threadsByDisk[disk]?.threads { return threads }
            threadsByDisk = threadsByDisk.filter { $0.value.threads != nil }
            let threads = WorkerThreads(limit: limit)
            threadsByDisk[disk] = WeakThreads(threads: threads)
            return threads
        }
    }
}
