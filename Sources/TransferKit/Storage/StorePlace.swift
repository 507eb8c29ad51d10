import Locking
import SystemPackage
import TransferCore

/// Whether the database that is open is still the one that a later opening finds.
///
/// SQLite goes on writing to a database file that was deleted or replaced, so that changes would count as durable that no process ever reads.
final class StorePlace: Sendable {
    private let path: FilePath
    private let file: FileNumber
    /// Whether a transaction was committed to a file that no path leads to.
    private let isLost = Locked(false)

    /// - Throws: ``QueueError`` if there is no file at the path.
    init(_ path: FilePath) throws(QueueError) {
        self.path = path
        guard let file = FileNumber(of: path) else {
            throw QueueError(.storageUnavailable, "The store \(path) was deleted while it was being opened.")
        }
        self.file = file
    }

    /// Compares the device and the inode. Blocks.
    ///
    /// - Parameter hasCommitted: Whether a transaction was committed since the last check: if the file is gone then, nothing is accepted any
    ///   more, as what is in memory and what is on the disk differ.
    /// - Throws: ``QueueError`` with the code `storageUnavailable` if the file was deleted or replaced.
    func check(hasCommitted: Bool = false) throws(QueueError) {
        let isThere = FileNumber(of: path) == file
        if !isThere, hasCommitted { isLost.withLock { $0 = true } }
        guard isThere, !isLost.withLock({ $0 }) else { throw error }
    }

    /// For a diagnosis; nil if the file is where it was.
    var problem: String? {
        do throws(QueueError) {
            try check()
            return nil
        } catch {
            return error.message
        }
    }

    private var error: QueueError {
        QueueError(
            .storageUnavailable,
            "The store \(path) was deleted or replaced while the queue had it open; no change can be stored. Put the folder back, or open the queue again."
        )
    }
}
