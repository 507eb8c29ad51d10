import Locking
import SystemPackage
import TransferCore

/// Checks that the open database is still the file at its path. The next opening of the queue reads the file at that path.
///
/// SQLite continues to write to a deleted or replaced database file. Without this check, changes would count as durable although no process could
/// ever read them.
final class OpenDatabaseFile: Sendable {
    private let path: FilePath
    private let file: FileIdentity
    /// Whether a transaction was committed to a file that was no longer at the path.
    private let isLost = Locked(false)

    /// Records the identity of the file that is now at the path.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable` if there is no file at the path.
    init(_ path: FilePath) throws(QueueError) {
        self.path = path
        guard let file = FileIdentity(of: path) else {
            throw QueueError(.storageUnavailable, "The database \(path) was deleted while the queue opened it.")
        }
        self.file = file
    }

    /// Checks the device and the inode of the file at the path. Blocks.
    ///
    /// - Parameter hasCommitted: Whether a transaction was committed since the last check. If the file is missing or replaced after a commit,
    ///   all later checks fail, because the states in memory and on disk differ.
    /// - Throws: ``QueueError`` with the code `storageUnavailable` if the file was deleted or replaced.
    func check(hasCommitted: Bool = false) throws(QueueError) {
        let isAtPath = FileIdentity(of: path) == file
        if !isAtPath, hasCommitted { isLost.withLock { $0 = true } }
        guard isAtPath, !isLost.withLock({ $0 }) else { throw error }
    }

    /// The problem, as text for a diagnosis; nil if the file is at its path and no earlier check failed after a commit.
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
            "The database \(path) was deleted or replaced while the queue had it open, so no change can be stored. Move the original file back, or open the queue again."
        )
    }
}
