import Locking
package import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Makes a process the one owner of a storage folder, by flock(2) on a file in it.
///
/// The kernel drops the lock with the process, however that ends, so a dead owner never stands in the way.
package final class OwnerLock: Sendable {
    private static let storeMark = "store"

    /// Whether an earlier owner noted that the folder holds a store.
    let notesStore: Bool
    private let descriptor: Locked<FileDescriptor?>

    private init(_ descriptor: FileDescriptor, notesStore: Bool) {
        self.descriptor = Locked(descriptor)
        self.notesStore = notesStore
    }

    deinit { release() }

    /// Takes the lock, waiting for another owner at most as long as the time-out: anew for each, so that any number of processes which come
    /// together, and each let go soon, have their turn however slow the machine is.
    ///
    /// - Throws: ``QueueError`` with the code `storageInUse`, naming the owner's process, or `storageUnavailable`.
    package static func acquire(in folder: FilePath, timeout: Duration, clock: EngineClock) async throws(QueueError) -> OwnerLock {
        let descriptor = try await DiskThread.run(.storage) { () throws(QueueError) in
            try StorageFolder.open(folder.appending("owner.lock"), .readWrite, options: .create)
        }
        // flock(2) has no time-out; its blocking form can't be given up without a signal.
        let start = clock.now()
        var deadline = start + timeout
        var last: [UInt8]?
        while flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            guard code == EWOULDBLOCK || code == EINTR else {
                try? descriptor.close()
                throw QueueError(.storageUnavailable, "The storage folder \(folder) can't be locked (\(Errno(rawValue: code))).")
            }
            let note = readNote(descriptor)
            if let last, last != note { deadline = clock.now() + timeout }
            last = note
            // Who has just taken the lock has yet to leave its number, without which nobody could be told.
            let end = note.isEmpty ? max(deadline, start + .seconds(1)) : deadline
            guard clock.now() < end, (try? await clock.sleep(.milliseconds(20))) != nil else {
                let owner = Int(String(decoding: note, as: UTF8.self).split(separator: "\n").first ?? "")
                try? descriptor.close()
                throw QueueError(
                    .storageInUse,
                    "The storage folder \(folder) is in use by \(owner.map { "process \($0)" } ?? "another process"). Stop that process, or use another folder."
                )
            }
        }
        let notesStore = String(decoding: readNote(descriptor), as: UTF8.self).split(separator: "\n").contains { $0 == storeMark }
        let lock = OwnerLock(descriptor, notesStore: notesStore)
        recordOwner(descriptor, notesStore: notesStore)
        return lock
    }

    /// Lets go; harmless when done twice.
    package func release() {
        descriptor.withLock { descriptor in
            // Closing alone does not unlock as long as a child process that is just being started has a copy (flock(2)).
            if let descriptor { _ = flock(descriptor.rawValue, LOCK_UN) }
            try? descriptor?.close()
            descriptor = nil
        }
    }

    /// Notes for later owners that the folder holds a store: an empty database is damage then.
    func recordStore() {
        guard !notesStore else { return }
        descriptor.withLock { descriptor in
            if let descriptor { Self.recordOwner(descriptor, notesStore: true) }
        }
    }

    private static func recordOwner(_ descriptor: FileDescriptor, notesStore: Bool) {
        // Only for people, messages and those that wait: the lock is what counts, so a full disk does no harm. The number tells this owner
        // from another one in the same process.
        let note = "\(getpid())\n\(UInt64.random(in: 0 ... .max))\n" + (notesStore ? "\(storeMark)\n" : "")
        // Written over the old note, so that a kill between the two calls loses none.
        guard (try? descriptor.writeAll(toAbsoluteOffset: 0, note.utf8)) != nil else { return }
        _ = ftruncate(descriptor.rawValue, off_t(note.utf8.count))
    }

    private static func readNote(_ descriptor: FileDescriptor) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try? unsafe bytes.withUnsafeMutableBytes { unsafe try descriptor.read(fromAbsoluteOffset: 0, into: $0) }
        return Array(bytes.prefix(count ?? 0))
    }
}
