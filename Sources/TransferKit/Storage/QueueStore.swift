import Foundation
package import GRDB
import Logging
package import SystemPackage
import TransferCore

/// The queue on disk: a SQLite database in write-ahead mode, in a folder that one process owns.
package final class QueueStore: Sendable {
    package let folder: FilePath
    package let pool: DatabasePool
    package let spool: Spool
    /// Where local files are found.
    package let sources: SourceFolders
    let clock: EngineClock
    private let lock: OwnerLock
    private let walGuard: WALGuard?
    let place: StorePlace

    /// Opens or makes the store in a folder, once no other process owns it.
    ///
    /// - Parameter observer: Told of every step of what changes the store, on the thread that does it; for tests.
    /// - Throws: ``QueueError`` with the code `storageInUse`, `storageTooNew`, `storageUnavailable` or `storageDamaged`; the store is untouched.
    package static func open(
        _ storage: Storage, clock: EngineClock, observer: (@Sendable (StoreStep) -> Void)? = nil
    ) async throws(QueueError) -> QueueStore {
        try await DiskThread.run(.storage) { () throws(QueueError) in try StorageFolder.prepare(storage.folder) }
        let lock = try await OwnerLock.acquire(in: storage.folder, timeout: storage.ownerTimeout, clock: clock)
        return try await DiskThread.run(.storage) { () throws(QueueError) in
            do {
                return try QueueStore(storage, lock: lock, clock: clock, observer: observer)
            } catch {
                // Not left to the lock's last reference, which may outlive this call: whoever is told of the failure can try again at once.
                lock.release()
                throw storageError(error, folder: storage.folder)
            }
        }
    }

    private init(_ storage: Storage, lock: OwnerLock, clock: EngineClock, observer: (@Sendable (StoreStep) -> Void)?) throws {
        let folder = storage.folder
        let path = folder.appending("queue.sqlite")
        guard FilePath(path.string) == path else {
            // SQLite takes paths as UTF-8: it would open that of another folder.
            throw QueueError(.storageUnavailable, "The path of the storage folder \(folder) is not UTF-8; choose another one.")
        }
        try StorageFolder.inspect(path, notesStore: lock.notesStore)
        StorageFolder.makePrivate(path)
        var configuration = Configuration()
        configuration.label = "transferkit"
        configuration.maximumReaderCount = ClientReads.limit + 2
        configuration.foreignKeysEnabled = true
        if let observer { Self.observe(&configuration, observer) }
        let walGuard = try WALGuard(of: path)
        let pool = try DatabasePool(path: path.string, configuration: configuration)
        do {
            try Self.prepare(pool, at: path)
            self.folder = folder
            self.pool = pool
            self.clock = clock
            self.walGuard = walGuard
            place = try StorePlace(path)
            spool = Spool(in: folder)
            sources = SourceFolders(base: try Self.remember(storage.base, in: pool), spool: spool.folder)
            try spool.removeOrphans(of: pool)
            // The database and its log have names that a loss of power keeps before anything is answered as durable.
            StorageFolder.sync(folder)
            lock.recordStore()
            self.lock = lock
        } catch {
            try? pool.close()
            walGuard?.close()
            throw error
        }
    }

    /// In bytes.
    package static let longestLog = 16 << 20

    private static func prepare(_ pool: DatabasePool, at path: FilePath) throws {
        // A newer version may be recorded in the write-ahead log only, where the file's header does not show it.
        let version = try pool.read { try Int32.fetchOne($0, sql: "PRAGMA user_version") ?? 0 }
        try StorageFolder.checkVersion(version, of: path)
        // What one large transaction needs of the write-ahead log is given back by the next ones (sqlite.org/pragma.html#pragma_journal_size_limit).
        try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_size_limit = \(Self.longestLog)") }
        // GRDB sets `synchronous` to NORMAL as it turns write-ahead mode on, which a loss of power may cost the last transactions.
        try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
        try Schema.migrate(pool)
    }

    private static func observe(_ configuration: inout Configuration, _ observer: @escaping @Sendable (StoreStep) -> Void) {
        configuration.prepareDatabase { db in
            guard !db.configuration.readonly else { return }
            db.trace(options: [.statement, .profile]) { event in
                switch event {
                case .statement(let statement): observer(.before(statement.sql))
                case .profile(let statement, _): observer(.after(statement.sql))
                }
            }
        }
    }

    /// Lets the folder go, and leaves the files in it as they are: what could not be opened stays as it was found.
    package func abandon() async {
        await DiskThread.run(.storage) { [pool, lock, walGuard] in
            try? pool.close()
            walGuard?.close()
            lock.release()
        }
    }

    /// Closes the database and lets the folder go.
    package func close() async {
        await DiskThread.run(.storage) { [walGuard] in walGuard?.close() }
        // A failure leaves the log to the next opener, which is how a killed process leaves it too. GRDB closes its readers last, and those
        // can't move the log into the database.
        _ = try? await pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        await DiskThread.run(.storage) { [pool, lock] in
            try? pool.close()
            lock.release()
        }
    }

    package static func storageError(_ error: any Error, folder: FilePath) -> QueueError {
        if let error = error as? QueueError { return error }
        if error is DecodingError || error is RowDecodingError || error is UnreadableColumn {
            return QueueError(.storageDamaged, "A row of the store in \(folder) can't be read: \(error). Restore the store from a backup.")
        }
        guard let error = error as? DatabaseError else {
            return QueueError(.storageUnavailable, "The store in \(folder) can't be used: \(error).")
        }
        // GRDB's word for a pool that was closed.
        if error.resultCode == .SQLITE_MISUSE { return QueueError(.shutDown, "The queue was shut down.") }
        let text = error.message ?? "SQLite error \(error.resultCode.rawValue)"
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            return QueueError(.storageDamaged, "The store in \(folder) is damaged: \(text). Restore it from a backup, or move it away.")
        case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH:
            return QueueError(
                .storageUnavailable, "The store in \(folder) can't be opened for writing: \(text). Check the folder's permissions.")
        case .SQLITE_FULL:
            return QueueError(.storageUnavailable, "The disk that holds the store in \(folder) is full: \(text). Free some space.")
        default:
            return QueueError(.storageUnavailable, "The store in \(folder) can't be used: \(text).")
        }
    }
}
