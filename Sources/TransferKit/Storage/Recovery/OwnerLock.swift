import Locking
package import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The lock that makes a process the only owner of a storage folder, by flock(2) on a file in it.
///
/// The kernel releases the lock when the process ends for any reason, so a dead owner never blocks others.
package final class OwnerLock: Sendable {
    private static let storeMark = "store"

    /// Whether an earlier owner recorded that the folder contains a store.
    let notesStore: Bool
    private let descriptor: Locked<FileDescriptor?>

    private init(_ descriptor: FileDescriptor, notesStore: Bool) {
        self.descriptor = Locked(descriptor)
        self.notesStore = notesStore
    }

    deinit { release() }

    /// Acquires the lock. Waits for another owner, at most as long as the timeout. The timeout restarts with each new owner, so that
    /// processes with short work all get their turn, even on a slow machine.
    ///
    /// - Throws: ``QueueError`` with the code `storageInUse`, which names the owner's process, or `storageUnavailable`.
    package static func acquire(in folder: FilePath, timeout: Duration, clock: EngineClock) async throws(QueueError) -> OwnerLock {
        let descriptor = try await BlockingIO.run(.storage) { () throws(QueueError) in
            try StorageFolder.open(folder.appending("owner.lock"), .readWrite, options: .create)
        }
        // flock(2) has no timeout; its blocking form can only be interrupted by a signal.
        let start = clock.now()
        var deadline = start + timeout
        var last: [UInt8]?
        while flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            guard code == EWOULDBLOCK || code == EINTR else {
                try? descriptor.close()
                throw QueueError(.storageUnavailable, "Cannot lock the storage folder \(folder): \(Errno(rawValue: code)).")
            }
            let note = readNote(descriptor)
            if let last, last != note { deadline = clock.now() + timeout }
            last = note
            // If a new owner has not written its process ID yet, wait for the ID, because the message contains it.
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

    /// Releases the lock. Further calls have no effect.
    package func release() {
        descriptor.withLock { descriptor in
            // close(2) does not unlock while a child process that is being started has a copy of the descriptor (flock(2)).
            if let descriptor { _ = flock(descriptor.rawValue, LOCK_UN) }
            try? descriptor?.close()
            descriptor = nil
        }
    }

    /// Records for later owners that the folder contains a store, so that they recognize an empty database as damage.
    func recordStore() {
        guard !notesStore else { return }
        descriptor.withLock { descriptor in
            if let descriptor { Self.recordOwner(descriptor, notesStore: true) }
        }
    }

    private static func recordOwner(_ descriptor: FileDescriptor, notesStore: Bool) {
        // The record serves messages, waiting processes and the recognition of an empty database as damage. The lock alone determines the owner, so a
        // full disk does no harm. The random number distinguishes this owner from another owner in the same process.
        let note = "\(getpid())\n\(UInt64.random(in: 0 ... .max))\n" + (notesStore ? "\(storeMark)\n" : "")
        // The new record overwrites the old record before the file is shortened, so a kill between the two calls does not lose the mark.
        guard (try? descriptor.writeAll(toAbsoluteOffset: 0, note.utf8)) != nil else { return }
        _ = ftruncate(descriptor.rawValue, off_t(note.utf8.count))
    }

    private static func readNote(_ descriptor: FileDescriptor) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try? unsafe bytes.withUnsafeMutableBytes { unsafe try descriptor.read(fromAbsoluteOffset: 0, into: $0) }
        return Array(bytes.prefix(count ?? 0))
    }
}
