import Locking
package import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The lock that makes a process the only owner of a storage folder. Uses flock(2) on a file in the folder.
///
/// The kernel releases the lock when the process ends for any reason, so a dead owner never blocks other processes.
package final class OwnerLock: Sendable {
    static let name = "owner.lock"
    private static let databaseMark = "store"

    /// Whether an earlier owner noted in the lock file that the folder contains a database. At that time, the database existed, and its
    /// name was durable.
    let databaseWasRecorded: Bool
    private let descriptor: Locked<FileDescriptor?>

    private init(_ descriptor: FileDescriptor, databaseWasRecorded: Bool) {
        self.descriptor = Locked(descriptor)
        self.databaseWasRecorded = databaseWasRecorded
    }

    deinit { release() }

    /// Acquires the lock. While another owner holds the lock, waits up to `timeout`. The timeout restarts whenever the owner changes.
    /// Several processes that need the folder only briefly therefore all get the lock, even on a slow machine.
    ///
    /// - Throws: ``QueueError`` with the code `storageInUse`, which names the owner's process if it is known, or `storageUnavailable`.
    package static func acquire(in folder: FilePath, timeout: Duration, clock: EngineClock) async throws(QueueError) -> OwnerLock {
        let descriptor = try await BlockingIO.run(.storage) { () throws(QueueError) in
            try StorageFolder.open(folder.appending(name), .readWrite, options: .create)
        }
        // flock(2) has no timeout, and only a signal can interrupt its blocking form, so retry every 20 ms.
        let start = clock.now()
        var deadline = start + timeout
        var last: [UInt8]?
        while flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            guard code == EWOULDBLOCK || code == EINTR else {
                try? descriptor.close()
                throw QueueError(.storageUnavailable, "Cannot lock the storage folder \(folder): \(Errno(rawValue: code)).")
            }
            let content = readContent(descriptor)
            if let last, last != content { deadline = clock.now() + timeout }
            last = content
            // A new owner may not have written its process ID yet. The error message contains the ID, so wait for at least a second.
            let end = content.isEmpty ? max(deadline, start + .seconds(1)) : deadline
            guard clock.now() < end, (try? await clock.sleep(.milliseconds(20))) != nil else {
                let owner = Int(String(decoding: content, as: UTF8.self).split(separator: "\n").first ?? "")
                try? descriptor.close()
                throw QueueError(
                    .storageInUse,
                    "The storage folder \(folder) is in use by \(owner.map { "process \($0)" } ?? "another process"). Stop that process, or use another folder."
                )
            }
        }
        let lines = String(decoding: readContent(descriptor), as: UTF8.self).split(separator: "\n")
        let databaseWasRecorded = lines.contains { $0 == databaseMark }
        let lock = OwnerLock(descriptor, databaseWasRecorded: databaseWasRecorded)
        recordOwner(descriptor, databaseWasRecorded: databaseWasRecorded)
        return lock
    }

    /// Acquires the lock of a folder whose owner has ended. Does not wait, and changes no file. Blocks.
    ///
    /// - Returns: nil if the folder has an owner, or no lock file.
    static func ofAbandoned(_ folder: FilePath) -> OwnerLock? {
        guard let descriptor = try? StorageFolder.open(folder.appending(name), .readOnly) else { return nil }
        guard flock(descriptor.rawValue, LOCK_EX | LOCK_NB) == 0 else {
            try? descriptor.close()
            return nil
        }
        return OwnerLock(descriptor, databaseWasRecorded: false)
    }

    /// Whether the lock file still has a name. If not, another process has removed the folder.
    var isInPlace: Bool {
        descriptor.withLock { descriptor in
            var status = stat()
            return descriptor.map { unsafe fstat($0.rawValue, &status) == 0 && status.st_nlink > 0 } ?? false
        }
    }

    /// Releases the lock. Further calls have no effect.
    package func release() {
        descriptor.withLock { descriptor in
            // close(2) does not unlock while a child process that is being started has a copy of the descriptor (flock(2)).
            if let descriptor { _ = flock(descriptor.rawValue, LOCK_UN) }
            try? descriptor?.close()
            descriptor = nil
        }
    }

    /// Notes in the lock file that the folder contains a database, so that later owners recognize an empty or missing database as damaged.
    /// The note survives a power loss, if possible.
    func recordDatabase() {
        guard !databaseWasRecorded else { return }
        descriptor.withLock { descriptor in
            guard let descriptor else { return }
            Self.recordOwner(descriptor, databaseWasRecorded: true)
            _ = fsync(descriptor.rawValue)
        }
    }

    private static func recordOwner(_ descriptor: FileDescriptor, databaseWasRecorded: Bool) {
        // Waiting processes read the lock file to notice a new owner, and to name the owner in an error message. Later owners read it to
        // recognize an empty or missing database as damaged. The lock alone determines the owner, so a failure to write the file, for
        // example because the disk is full, affects only these uses. The random number distinguishes this owner from another owner in the
        // same process.
        let content = "\(getpid())\n\(UInt64.random(in: 0 ... .max))\n" + (databaseWasRecorded ? "\(databaseMark)\n" : "")
        // The new content overwrites the old content before the file is shortened, so the note about the database is not
        // lost if the process is killed between the two calls.
        guard (try? descriptor.writeAll(toAbsoluteOffset: 0, content.utf8)) != nil else { return }
        _ = ftruncate(descriptor.rawValue, off_t(content.utf8.count))
    }

    private static func readContent(_ descriptor: FileDescriptor) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try? unsafe bytes.withUnsafeMutableBytes { unsafe try descriptor.read(fromAbsoluteOffset: 0, into: $0) }
        return Array(bytes.prefix(count ?? 0))
    }
}
