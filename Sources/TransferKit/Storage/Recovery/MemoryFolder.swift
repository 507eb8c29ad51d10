import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The storage folders of in-memory queues (``Storage/inMemory``), one for each queue. On Linux, these folders are on an in-memory file
/// system; elsewhere, in the temporary folder.
enum MemoryFolder {
    private static let prefix = "transferkit-memory-"
    /// The number of folders that ``make(_:)`` tries to create. Another process can remove a new folder before it is locked.
    private static let attempts = 10

    /// Creates and locks a new folder. First removes the folders that ended processes of this user left behind.
    ///
    /// - Throws: ``QueueError``, usually with the code `storageUnavailable`, for example if this machine has no usable in-memory file
    ///   system.
    static func make(_ clock: EngineClock) async throws(QueueError) -> (FilePath, OwnerLock) {
        let parent = try await BlockingIO.run(.storage) { () throws(QueueError) in
            let parent = try mountPoint()
            removeAbandoned(in: parent)
            return parent
        }
        var failure = QueueError(.storageUnavailable, "Other processes removed each new folder in \(parent). Open the queue again.")
        for _ in 0..<attempts {
            let folder = parent.appending(prefix + UUID().uuidString)
            do throws(QueueError) {
                try await BlockingIO.run(.storage) { () throws(QueueError) in try StorageFolder.prepare(folder) }
                let lock = try await OwnerLock.acquire(in: folder, timeout: .zero, clock: clock)
                // Before this process locked the folder, another process may have removed it as abandoned.
                if lock.isInPlace { return (folder, lock) }
                lock.release()
            } catch {
                failure = error
            }
        }
        throw failure
    }

    /// Removes a folder with its content. Blocks.
    ///
    /// The lock file is removed last, so that another process can finish the removal if this process is killed.
    static func remove(_ folder: FilePath) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? [] where name != OwnerLock.name {
            try? FileManager.default.removeItem(atPath: folder.appending(name).string)
        }
        try? FileManager.default.removeItem(atPath: folder.string)
    }

    #if os(Linux)
        private static func mountPoint() throws(QueueError) -> FilePath {
            for folder in [FilePath("/dev/shm"), Storage.variable("XDG_RUNTIME_DIR")].compactMap(\.self) where isInMemory(folder) {
                if unsafe folder.withPlatformString({ unsafe access($0, R_OK | W_OK | X_OK) }) == 0 { return folder }
            }
            throw QueueError(
                .storageUnavailable,
                "There is no writable file system in memory for a queue without a storage folder. Mount one at /dev/shm (mount -t tmpfs), or set "
                    + "XDG_RUNTIME_DIR.")
        }

        private static func isInMemory(_ folder: FilePath) -> Bool {
            guard let device = FileIdentity(of: folder)?.device,
                let mounts = FileManager.default.contents(atPath: "/proc/self/mountinfo").map({ String(decoding: $0, as: UTF8.self) })
            else { return false }
            // The numbers of a device as in sys/sysmacros.h. The third field of a line contains these numbers; the field after "-" contains
            // the type of the file system (proc_pid_mountinfo(5)).
            let (major, minor) = ((device >> 8 & 0xFFF) | (device >> 32 & ~0xFFF), (device & 0xFF) | (device >> 12 & 0xFFFF_FF00))
            return mounts.split(separator: "\n").contains { line in
                let fields = line.split(separator: " ")
                guard fields.count > 3, fields[2] == "\(major):\(minor)", let dash = fields.firstIndex(of: "-") else { return false }
                return fields[(dash + 1)...].first.map { $0 == "tmpfs" || $0 == "ramfs" } ?? false
            }
        }
    #else
        private static func mountPoint() throws(QueueError) -> FilePath { FilePath(NSTemporaryDirectory()) }
    #endif

    /// Removes the folders of this user that no process has locked. The kernel releases the lock of a process that ends for any reason.
    private static func removeAbandoned(in parent: FilePath) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent.string)) ?? []
        for name in names where name.hasPrefix(prefix) && UUID(uuidString: String(name.dropFirst(prefix.count))) != nil {
            let folder = parent.appending(name)
            var status = stat()
            guard unsafe folder.withPlatformString({ unsafe lstat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR,
                status.st_uid == geteuid()
            else { continue }
            if let lock = OwnerLock.ofAbandoned(folder) {
                remove(folder)
                lock.release()
            } else {
                // The folder has an owner, or the process that created the folder ended before it created the lock file. This call removes
                // only an empty folder.
                _ = unsafe folder.withPlatformString { unsafe rmdir($0) }
            }
        }
    }
}
