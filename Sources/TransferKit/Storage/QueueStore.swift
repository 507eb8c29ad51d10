import Foundation
package import GRDB
import Logging
package import SystemPackage
import TransferCore

/// The database of a queue: a SQLite database in write-ahead mode, in a storage folder that one process owns.
package final class QueueStore: Sendable {
    package let folder: FilePath
    package let pool: DatabasePool
    package let spool: Spool
    /// Converts the paths of local files to and from their stored form.
    package let sources: SourceFolders
    let clock: EngineClock
    private let lock: OwnerLock
    private let walGuard: WALGuard?
    /// Whether this is an in-memory queue (``Storage/inMemory``), whose folder is deleted when the database is closed.
    private let isInMemory: Bool
    let databaseFile: OpenDatabaseFile
    /// The maximum number of rows that one transaction changes when the queue removes, quarantines or resets sessions, or moves checkpoints
    /// into the outbox (``DiscardQuery``).
    let rowsPerSweep: Int
    /// Whether the file that this object opened is still at the path of the database, and was there at each commit. Blocks.
    package var isInPlace: Bool { databaseFile.problem == nil }

    /// Opens or creates the database in a storage folder. If another process owns the folder, waits up to ``Storage/ownerTimeout``.
    ///
    /// - Parameters:
    ///   - observer: Called before and after each statement on the writing connection, on the thread that executes the statement. For tests.
    ///   - rowsPerSweep: The maximum number of rows that one transaction changes when the queue removes, quarantines or resets sessions, or
    ///     moves checkpoints into the outbox (``DiscardQuery``).
    /// - Throws: ``QueueError`` with the code `storageInUse`, `storageTooNew`, `storageUnavailable` or `storageDamaged`. A database that is
    ///   damaged or too new stays unchanged.
    package static func open(
        _ storage: Storage, clock: EngineClock, observer: (@Sendable (StoreStep) -> Void)? = nil, rowsPerSweep: Int = maximumRowsPerSweep
    ) async throws(QueueError) -> QueueStore {
        let (folder, lock) = try await lockedFolder(storage, clock)
        return try await BlockingIO.run(.storage) { () throws(QueueError) in
            do {
                return try QueueStore(
                    storage, in: folder, lock: lock, clock: clock, observer: observer, rowsPerSweep: rowsPerSweep)
            } catch {
                if storage.folder == nil { MemoryFolder.remove(folder) }
                // Released explicitly, because the last reference to the lock can outlive this call, and the caller may retry immediately.
                lock.release()
                throw storageError(error, folder: folder)
            }
        }
    }

    private static func lockedFolder(_ storage: Storage, _ clock: EngineClock) async throws(QueueError) -> (FilePath, OwnerLock) {
        guard let folder = storage.folder else { return try await MemoryFolder.make(clock) }
        try await BlockingIO.run(.storage) { () throws(QueueError) in try StorageFolder.prepare(folder) }
        return (folder, try await OwnerLock.acquire(in: folder, timeout: storage.ownerTimeout, clock: clock))
    }

    private init(
        _ storage: Storage, in folder: FilePath, lock: OwnerLock, clock: EngineClock, observer: (@Sendable (StoreStep) -> Void)?,
        rowsPerSweep: Int
    ) throws {
        let path = folder.appending("queue.sqlite")
        guard FilePath(path.string) == path else {
            // SQLite reads paths as UTF-8, so it would open a database in a different folder.
            throw QueueError(.storageUnavailable, "The path of the storage folder \(folder) is not UTF-8. Choose another folder.")
        }
        try StorageFolder.inspect(path, databaseWasRecorded: lock.databaseWasRecorded)
        try StorageFolder.checkSpace(in: folder)
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
            self.rowsPerSweep = rowsPerSweep
            isInMemory = storage.folder == nil
            self.pool = pool
            self.clock = clock
            self.walGuard = walGuard
            databaseFile = try OpenDatabaseFile(path)
            spool = Spool(in: folder)
            sources = SourceFolders(base: try Self.remember(storage.base, in: pool), spool: spool.folder)
            try spool.removeOrphans(of: pool)
            // The names of the database and its log must survive a power loss before the queue reports any change as durable.
            StorageFolder.sync(folder)
            lock.recordDatabase()
            self.lock = lock
        } catch {
            try? pool.close()
            walGuard?.close()
            throw error
        }
    }

    /// The maximum size in bytes that the write-ahead log keeps between transactions.
    package static let maximumLogSize = 16 << 20

    private static func prepare(_ pool: DatabasePool, at path: FilePath) throws {
        // Reads the schema version through SQLite. After a migration by a newer version of this software, the new number may be only in the
        // write-ahead log, not in the file's header.
        let version = try pool.read { try Int32.fetchOne($0, sql: "PRAGMA user_version") ?? 0 }
        try StorageFolder.checkVersion(version, of: path)
        // With this limit, a later transaction shrinks the write-ahead log after a large transaction has enlarged it
        // (sqlite.org/pragma.html#pragma_journal_size_limit).
        try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_size_limit = \(Self.maximumLogSize)") }
        // In write-ahead mode, GRDB sets `synchronous` to NORMAL, with which a power loss can undo the last transactions.
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

    deinit {
        guard isInMemory else { return }
        Task { [folder, lock] in await Self.removeFolder(folder, lock) }
    }

    private static func removeFolder(_ folder: FilePath, _ lock: OwnerLock) async {
        await BlockingIO.run(.storage) {
            MemoryFolder.remove(folder)
            lock.release()
        }
    }

    /// Returns the configured minimum free space, in bytes. For an in-memory queue, limits the minimum to a sixteenth of the size of the
    /// file system, because an in-memory file system may be small.
    func diskFloor(_ configured: Int64) async -> Int64 {
        guard isInMemory else { return configured }
        return await BlockingIO.run(.storage) { [folder] in DiskSpace.reserve(configured, at: folder) }
    }

    /// Closes the database without changing its files, and releases the folder. Called if the queue can't load the content of the database.
    package func abandon() async {
        await BlockingIO.run(.storage) { [pool, lock, walGuard] in
            try? pool.close()
            walGuard?.close()
            lock.release()
        }
    }

    package func close() async {
        await BlockingIO.run(.storage) { [walGuard] in walGuard?.close() }
        // Usually, SQLite moves the log into the database when the last connection is closed. GRDB closes its readers last, and a reader
        // can't write the database, so this method moves the log first. If this fails, the log stays until the database is opened again, as
        // after a crash.
        _ = try? await pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        await BlockingIO.run(.storage) { [pool, lock, folder, isInMemory] in
            try? pool.close()
            if isInMemory { MemoryFolder.remove(folder) }
            lock.release()
        }
    }

    /// Converts an error of SQLite, of GRDB, or of the decoding of a row to a ``QueueError``. Other errors become `storageUnavailable`.
    package static func storageError(_ error: any Error, folder: FilePath) -> QueueError {
        if let error = error as? QueueError { return error }
        if error is DecodingError || error is RowDecodingError || error is UnreadableColumn {
            return QueueError(
                .storageDamaged, "A row of the database in \(folder) can't be read: \(error). Restore the folder from a backup.")
        }
        guard let error = error as? DatabaseError else {
            return QueueError(.storageUnavailable, "Cannot use the storage folder \(folder): \(error).")
        }
        // GRDB returns this code for a closed pool.
        if error.resultCode == .SQLITE_MISUSE { return QueueError(.shutDown, "The queue was shut down.") }
        let text = error.message ?? "SQLite error \(error.resultCode.rawValue)"
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            return QueueError(
                .storageDamaged, "The database in \(folder) is damaged: \(text). Restore the folder from a backup, or move it away.")
        case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH:
            return QueueError(
                .storageUnavailable, "Cannot write to the storage folder \(folder): \(text). Check the folder's permissions.")
        case .SQLITE_FULL:
            return QueueError(.storageUnavailable, "The disk of the storage folder \(folder) is full: \(text). Free some space.")
        default:
            return QueueError(.storageUnavailable, "Cannot use the storage folder \(folder): \(text).")
        }
    }
}
