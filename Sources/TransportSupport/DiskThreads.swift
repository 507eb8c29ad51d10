import Locking
package import SystemPackage
package import TransferCore

/// Threads for calls that wait for disks. Each disk has its own, so a hanging disk does not block the others.
package final class DiskThreads: Sendable {
    private enum Disk: Hashable {
        case device(UInt64)
        /// A folder of unknown device, because only the device itself could report it.
        case folder(FilePath)
    }

    /// The threads end with their last user, because there may be any number of folders.
    private struct Entry {
        weak let threads: WorkerThreads?
    }

    private let limit: Int
    private let entries = Locked<[Disk: Entry]>([:])

    /// - Parameter limit: The maximum number of threads of a disk.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Returns the threads for a file to read.
    package func threads(for source: UploadSource) -> WorkerThreads { threads(.device(source.identity.device)) }

    /// Returns the threads for a file to write.
    package func threads(for destination: DownloadDestination) -> WorkerThreads { threads(.folder(destination.root)) }

    /// Returns the threads for files of which only the folder is known.
    package func threads(forFilesIn folder: FilePath) -> WorkerThreads { threads(.folder(folder)) }

    private func threads(_ disk: Disk) -> WorkerThreads {
        entries.withLock { entries in
            if let threads = entries[disk]?.threads { return threads }
            entries = entries.filter { $0.value.threads != nil }
            let threads = WorkerThreads(limit: limit)
            entries[disk] = Entry(threads: threads)
            return threads
        }
    }
}
