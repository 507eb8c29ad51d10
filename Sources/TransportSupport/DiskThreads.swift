import Locking
package import SystemPackage
package import TransferCore

/// Threads for calls that wait for disks: a few for each, so that a disk that hangs keeps nobody from using another.
package final class DiskThreads: Sendable {
    private enum Disk: Hashable {
        case device(UInt64)
        /// Which device it is on could only be asked of that device.
        case folder(FilePath)
    }

    /// They end with the last one who uses them: there may be any number of folders.
    private struct Entry {
        weak let threads: WorkerThreads?
    }

    private let limit: Int
    private let entries = Locked<[Disk: Entry]>([:])

    /// - Parameter limit: How many threads a disk may have.
    package init(limit: Int) {
        self.limit = limit
    }

    /// The threads for a file that is read.
    package func threads(for source: UploadSource) -> WorkerThreads { threads(.device(source.identity.device)) }

    /// The threads for a file that is received.
    package func threads(for destination: DownloadDestination) -> WorkerThreads { threads(.folder(destination.root)) }

    /// The threads for files of which no more is known than the folder that they are in.
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
