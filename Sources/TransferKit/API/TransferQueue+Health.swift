import GRDB
import GRDBSQLite
import Locking
import Logging

/// The health of a queue's database.
public struct StoreHealth: Hashable, Sendable, Codable {
    /// The version of the SQLite library in this process.
    public var sqliteVersion: String
    /// The version of the database schema: the number of the last migration.
    public var schemaVersion: Int
    /// The problems found by SQLite's `quick_check`, by its foreign key check, and by a check that the database file is still at its path. Empty
    /// for an intact database.
    public var problems: [String]
    /// The number of sessions in quarantine; see ``TransferQueue/quarantined()``.
    public var quarantined: Int
}

extension StoreHealth {
    /// The version of the SQLite library in this process. Does not open a database.
    package static var sqliteLibraryVersion: String {
        // The string is a constant of the library (sqlite.org/c3ref/libversion.html).
        unsafe String(cString: sqlite3_libversion())
    }
}

extension TransferQueue {
    /// Reads the whole database and checks it for damage (sqlite.org/pragma.html, `quick_check` and `foreign_key_check`).
    ///
    /// The call takes time proportional to the database's size. The queue continues to work during the check. Intended for troubleshooting.
    ///
    /// - Throws: ``QueueError`` with the code `storageDamaged` or `storageUnavailable` if the database can't be read at all.
    public func storeHealth() async throws -> StoreHealth {
        await waitForEarlierInputs()
        return try await clientReads.run { try await store.health() }
    }
}

extension TransferQueue {
    /// The sessions in quarantine, oldest first. The queue puts a session in quarantine if it can't read or change the stored state of the
    /// session; see <doc:QueueSemantics#Quarantine>.
    ///
    /// - Throws: ``QueueError`` with the code `storageDamaged` or `storageUnavailable` if the database can't be read at all.
    public func quarantined() async throws -> [QuarantinedSession] {
        await waitForEarlierInputs()
        return try await clientReads.run { try await store.quarantined() }
    }

    /// Returns one page of the stored rows of a session in quarantine, in order: for example, the rows of its files and checkpoints.
    ///
    /// - Parameters:
    ///   - number: The ``QuarantinedSession/number``.
    ///   - last: The ``QuarantinedRow/number`` of the last row of the previous page; 0 for the first page.
    ///   - limit: The maximum number of rows.
    /// - Throws: ``QueueError`` with the code `storageDamaged` or `storageUnavailable` if the database can't be read at all.
    public func quarantinedRows(of number: Int64, after last: Int64 = 0, limit: Int = 1_000) async throws -> [QuarantinedRow] {
        try await clientReads.run { try await store.quarantinedRows(of: number, after: last, limit: limit) }
    }

    /// The number of sessions in quarantine. Sessions in quarantine are not listed and never run.
    ///
    /// - Throws: ``QueueError`` with the code `storageDamaged` or `storageUnavailable` if the database can't be read at all.
    public func quarantinedCount() async throws -> Int {
        await waitForEarlierInputs()
        return try await clientReads.run { try await store.quarantinedCount() }
    }

    /// Restores a session from quarantine. The session returns to its position in the order when the queue is next opened. If the session still
    /// can't be read then, it is quarantined again.
    ///
    /// The call also restores the session's files, folders and checkpoints, and the upload URLs that the app supplied for items.
    ///
    /// - Parameter number: The ``QuarantinedSession/number``.
    /// - Throws: ``QueueError`` with the code `noSuchSession` if no quarantined session has the number; `noSuchAccount` if its account was
    ///   deleted; `invalidTransition` while the session is still being quarantined; `storageDamaged` or `storageUnavailable`.
    public func restoreQuarantined(_ number: Int64) async throws {
        try await store.restoreQuarantined(number)
        configuration.logger.notice("Restored a session from quarantine. It returns to the queue when the queue's database is next opened.")
    }

    /// Permanently deletes a session in quarantine. The session's unfinished uploads stay on the servers. A tus server removes the uploads when they
    /// expire; part files on SFTP servers do not expire.
    ///
    /// - Parameter number: The ``QuarantinedSession/number``.
    /// - Throws: ``QueueError`` with the code `noSuchSession` if no quarantined session has the number; `storageDamaged` or
    ///   `storageUnavailable`.
    public func dropQuarantined(_ number: Int64) async throws {
        try await store.dropQuarantined(number)
        deferredDeletion.wake()
        configuration.logger.notice("Deleted a session in quarantine.")
    }
}

extension TransferQueue {
    /// The minimum time between two events from ``reportDamage(_:)``, because many sessions can find the same damage.
    private static let damageInterval = Duration.seconds(60)

    nonisolated func reportDamage(_ error: QueueError) {
        let now = configuration.clock.now()
        let isNew = damageReportedAt.withLock { time in
            if let known = time, now - known < Self.damageInterval { return false }
            time = now
            return true
        }
        if isNew { report(storageFailed: error) }
    }

    nonisolated func report(storageFailed error: QueueError) {
        configuration.logger.error("\(error.message)")
        hub.publishUnnumbered(.storageFailed(error), at: configuration.clock.date())
    }
}

extension QueueStore {
    private static let maximumReportedProblems = 20

    func health() async throws -> StoreHealth {
        do {
            return try await pool.read { [databaseFile] db in
                var problems = databaseFile.problem.map { [$0] } ?? []
                problems += try String.fetchAll(db, sql: "PRAGMA quick_check(\(Self.maximumReportedProblems))").filter { $0 != "ok" }
                let broken = try StoredRow.fetchCursor(db.makeStatement(sql: "PRAGMA foreign_key_check"))
                while let row = try broken.next(), problems.count < 2 * Self.maximumReportedProblems {
                    let (table, parent) = (try row.decode(String.self, atIndex: 0), try row.decode(String.self, atIndex: 2))
                    problems.append("a row of \(table) refers to a row of \(parent) that does not exist")
                }
                return StoreHealth(
                    sqliteVersion: StoreHealth.sqliteLibraryVersion,
                    schemaVersion: try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0, problems: problems,
                    quarantined: try Int.fetchOne(db, sql: "SELECT count(*) FROM quarantine") ?? 0)
            }
        } catch let error as CancellationError {
            throw error
        } catch {
            throw Self.storageError(error, folder: folder)
        }
    }
}
