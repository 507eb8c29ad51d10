import GRDB
import Locking
import Logging

/// What a queue knows of the state of its store.
public struct StoreHealth: Hashable, Sendable, Codable {
    /// The version of the SQLite library that this process runs on.
    public var sqliteVersion: String
    /// The schema of the store; see the queue's own migrations.
    public var schemaVersion: Int
    /// What SQLite's `quick_check` and foreign key check found, each a line in their own words; empty for a sound store.
    public var problems: [String]
    /// How many sessions could not be read and are in quarantine; see ``TransferQueue/quarantined()``.
    public var quarantined: Int
}

extension StoreHealth {
    /// Also reads what an owner reports that does not know of ``quarantined``.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        sqliteVersion = try values.decode(String.self, forKey: .sqliteVersion)
        schemaVersion = try values.decode(Int.self, forKey: .schemaVersion)
        problems = try values.decode([String].self, forKey: .problems)
        quarantined = try values.decodeIfPresent(Int.self, forKey: .quarantined) ?? 0
    }
}

extension TransferQueue {
    /// Reads the whole store and looks for damage (sqlite.org/pragma.html, `quick_check` and `foreign_key_check`).
    ///
    /// Takes time in proportion to the store's size, without holding up what changes the queue. For a person's diagnosis.
    ///
    /// - Throws: ``QueueError`` with the code `storageDamaged` or `storageUnavailable` if the store can't be read at all.
    public func storeHealth() async throws -> StoreHealth {
        await settle()
        return try await clientReads.run { try await store.health() }
    }
}

extension TransferQueue {
    /// What could not be read and was set aside, the oldest first.
    ///
    /// - Throws: ``QueueError`` with the code `storageDamaged` or `storageUnavailable` if the store can't be read at all.
    public func quarantined() async throws -> [QuarantinedRow] {
        await settle()
        return try await clientReads.run { try await store.quarantined() }
    }

    /// What belonged to something that was set aside, such as the files and checkpoints of a session: in order, page by page.
    ///
    /// - Parameters:
    ///   - number: The ``QuarantinedRow/number`` of what was set aside.
    ///   - part: The last part that is known; 0 for the beginning.
    ///   - limit: How many parts at most.
    /// - Throws: ``QueueError`` with the code `storageDamaged` or `storageUnavailable` if the store can't be read at all.
    public func quarantinedParts(of number: Int64, after part: Int64 = 0, limit: Int = 1_000) async throws -> [QuarantinedPart] {
        try await clientReads.run { try await store.quarantinedParts(of: number, after: part, limit: limit) }
    }

    /// How many sessions are in quarantine. They are in no listing, and never run.
    ///
    /// - Throws: ``QueueError`` with the code `storageDamaged` or `storageUnavailable` if the store can't be read at all.
    public func quarantinedCount() async throws -> Int {
        await settle()
        return try await clientReads.run { try await store.quarantinedCount() }
    }

    /// Restores a session from quarantine. It is in the queue again, at its place, after the next opening of the queue; if that can't read it,
    /// it is quarantined again.
    ///
    /// The files, folders and checkpoints of the session are restored too, but not the upload URLs that items were given.
    ///
    /// - Parameter number: The ``QuarantinedRow/number``.
    /// - Throws: ``QueueError`` with the code `noSuchSession` if no session is in quarantine under the number; `noSuchAccount` if its account
    ///   was deleted; `invalidTransition` while the session is still being set aside; `storageDamaged` or `storageUnavailable`.
    public func restoreQuarantined(_ number: Int64) async throws {
        try await store.restoreQuarantined(number)
        configuration.logger.notice("A session was restored from quarantine. The next opening of the queue finds it.")
    }

    /// Deletes a session that is in quarantine, for good. What servers have of it is left to expire there.
    ///
    /// - Parameter number: The ``QuarantinedRow/number``.
    /// - Throws: ``QueueError`` with the code `noSuchSession` if nothing is in quarantine under the number; `storageDamaged` or
    ///   `storageUnavailable`.
    public func dropQuarantined(_ number: Int64) async throws {
        try await store.dropQuarantined(number)
        configuration.logger.notice("A session in quarantine was deleted.")
    }
}

extension TransferQueue {
    /// The least time between two events that tell of damage: many sessions may meet the same.
    private static let damageInterval = Duration.seconds(60)

    nonisolated func tellOfDamage(_ error: QueueError) {
        let now = configuration.clock.now()
        let isNews = damageToldAt.withLock { time in
            if let known = time, now - known < Self.damageInterval { return false }
            time = now
            return true
        }
        if isNews { tell(storageFailed: error) }
    }

    nonisolated func tell(storageFailed error: QueueError) {
        configuration.logger.error("\(error.message)")
        hub.publishUnnumbered(.storageFailed(error), at: configuration.clock.date())
    }
}

extension QueueStore {
    private static let reportedProblems = 20

    func health() async throws -> StoreHealth {
        do {
            return try await pool.read { [place] db in
                var problems = place.problem.map { [$0] } ?? []
                problems += try String.fetchAll(db, sql: "PRAGMA quick_check(\(Self.reportedProblems))").filter { $0 != "ok" }
                let broken = try StoredRow.fetchCursor(db, sql: "PRAGMA foreign_key_check")
                while let row = try broken.next(), problems.count < 2 * Self.reportedProblems {
                    let (table, parent) = (try row.decode(String.self, atIndex: 0), try row.decode(String.self, atIndex: 2))
                    problems.append("a row of \(table) refers to a row of \(parent) that does not exist")
                }
                return StoreHealth(
                    sqliteVersion: try String.fetchOne(db, sql: "SELECT sqlite_version()") ?? "",
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
