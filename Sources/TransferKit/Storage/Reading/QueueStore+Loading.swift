import Foundation
import GRDB
import Locking
import TransferCore

extension QueueStore {
    /// Creates a scheduler with the content of the database. Quarantines unreadable sessions, and stores the changes that the end of the
    /// last process requires, for example for removals that waited for the end of a run.
    ///
    /// - Returns: The scheduler, a sentence about each session that went into quarantine, and the events to report.
    package func load(_ settings: Scheduler.Settings) async throws -> (Scheduler, quarantined: [String], events: [QueueEvent.Kind]) {
        let middle = try await read { db in
            // Halves the keys before the addition, because the sum of damaged keys could overflow.
            let least = try SessionKey.fetchOne(db, sql: "SELECT min(session) FROM schedule") ?? 0
            return try least / 2 + (SessionKey.fetchOne(db, sql: "SELECT max(session) FROM schedule") ?? 0) / 2
        }
        // There may be very many rows, so two readers each read the rows of half of the keys. No connection writes yet, so both readers see
        // the same state.
        async let rest = read { db in Locked<LoadedRows?>(try LoadedRows(ScheduleScan(db, (middle + 1)...(.max)))) }
        let lower = try await read { db in
            var scheduler = Scheduler(settings)
            var unreadable: [(SessionKey, String)] = []
            try Self.loadSettings(into: &scheduler, from: db)
            try Self.loadAccounts(into: &scheduler, from: db)
            // Only a queue with strict order needs to know which sessions have begun. Checkpoints show this, because every unfinished file
            // that has begun has a checkpoint. Even a download stores a checkpoint before it creates its part file.
            if settings.ordering == .strict { scheduler.load(begun: try Self.begunSessions(in: db)) }
            scheduler.reserveLoading(try Int.fetchOne(db, sql: "SELECT count(*) FROM schedule") ?? 0)
            try ScheduleScan(db, .min...middle).forEach { Self.load($0.key, $0.entry, $0.details, into: &scheduler, &unreadable) }
            return Locked<(Scheduler, [(SessionKey, String)])?>((scheduler, unreadable))
        }
        let upper = try await rest
        let (scheduler, unreadable, recovery, unmoved) = try await read { [rowsPerSweep] db in
            // Takes the values out of the locks, because copies would be large.
            var (scheduler, unreadable) = lower.withLock { $0.take() } ?? (Scheduler(settings), [])
            upper.withLock { $0.take() }?.forEach { Self.load($0, $1, $2, into: &scheduler, &unreadable) }
            scheduler.reserveKeys(through: try Self.lastSessionKey(in: db))
            var (recovery, duplicates) = scheduler.finishLoading()
            try scheduler.checkAllDependencies()
            unreadable += duplicates.map { ($0, "The session in row \($0) has the ID of another session.") }
            recovery += unreadable.map { .quarantine($0.0, $0.1) }
            recovery += try SessionKey.fetchAll(
                db,
                sql: """
                    SELECT held_by FROM discard WHERE held_by IS NOT NULL UNION SELECT session FROM removal WHERE is_held <> 0
                    """
            ).map { .releaseDiscards($0) }
            let (first, others) = try Self.sessionsWithUnmovedCheckpoints(limit: rowsPerSweep, leavingOut: Set(unreadable.map(\.0)), in: db)
            recovery += first.map { .discardPartial($0) }
            return (scheduler, unreadable, recovery, others)
        }
        try await recover(recovery)
        try await markDiscards(of: unmoved)
        while try await read({ [clock] in try Self.hasImplausiblyLateDiscards(at: clock.date(), in: $0) }),
            try await recover([.correctImplausiblyLateDiscards])
        {}
        let interrupted = scheduler.foundRunning.compactMap { scheduler.sessionIndex[$0] }.sorted { $0.rank < $1.rank }.map(\.id)
        var events: [QueueEvent.Kind] = interrupted.isEmpty ? [] : [.changed(interrupted, .waiting)]
        events += unreadable.map { .quarantined($0.1) }
        if !scheduler.foundOrphaned.isEmpty { events.append(.changed(scheduler.foundOrphaned, .held)) }
        return (scheduler, unreadable.map(\.1), events)
    }

    /// Stores the changes that loading requires, at most 10,000 in one transaction. Skips a change that the database rejects permanently,
    /// so that the queue can still be opened. The error occurs again when the affected session runs. If the database is damaged, throws
    /// instead.
    ///
    /// - Returns: Whether all changes are stored.
    @discardableResult
    private func recover(_ writes: [StoreWrite]) async throws(QueueError) -> Bool {
        var isComplete = true
        for start in stride(from: 0, to: writes.count, by: Self.maximumRowsPerSweep) {
            var group = Array(writes[start..<min(start + Self.maximumRowsPerSweep, writes.count)])
            while !group.isEmpty {
                do throws(StoreRefusal) {
                    try await commitIdentifyingFailure(group)
                    break
                } catch {
                    guard let culprit = error.culprit, error.error.code != .storageDamaged else { throw error.error }
                    group.remove(at: culprit.index)
                    isComplete = false
                }
            }
        }
        return isComplete
    }

    /// Finds the sessions with a checkpoint, as the table `begun`. Reads one row of each session, and not all checkpoints. `UNION` ends the search
    /// even if the rows of a damaged table are not in order.
    private static let sessionsWithCheckpoints = """
        WITH RECURSIVE begun(session) AS (
            SELECT min(session) FROM checkpoint
            UNION SELECT (SELECT min(checkpoint.session) FROM checkpoint WHERE checkpoint.session > begun.session)
                FROM begun WHERE begun.session IS NOT NULL
        )
        """

    /// Returns the sessions with a checkpoint of an earlier attempt. Omits sessions whose next run first moves all checkpoints into the
    /// outbox, the stored list of pending removals (``DiscardQuery``).
    private static func begunSessions(in db: Database) throws -> Set<SessionKey> {
        try SessionKey.fetchSet(
            db,
            sql: """
                \(sessionsWithCheckpoints)
                SELECT schedule.session FROM begun CROSS JOIN schedule ON schedule.session = begun.session
                WHERE NOT EXISTS (SELECT 1 FROM setting
                    WHERE name = 'discard ' || schedule.session OR name = 'reset ' || schedule.session AND value >= 0)
                """)
    }

    /// Returns the cancelled sessions whose checkpoints must still be moved into the outbox. An earlier process was killed after the end
    /// of a cancelled run, but before it had begun to move the checkpoints.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of checkpoints to move during the opening of the queue.
    ///   - unreadable: Sessions that go into quarantine with their checkpoints.
    /// - Returns: The first sessions, which together have at most `limit` checkpoints, and the other sessions.
    private static func sessionsWithUnmovedCheckpoints(
        limit: Int, leavingOut unreadable: Set<SessionKey>, in db: Database
    ) throws -> (first: [SessionKey], others: [SessionKey]) {
        let keys = try SessionKey.fetchAll(
            db,
            sql: """
                \(sessionsWithCheckpoints)
                SELECT schedule.session FROM begun CROSS JOIN schedule ON schedule.session = begun.session
                WHERE state = 'cancelled' AND NOT keeps_partial
                    AND NOT EXISTS (SELECT 1 FROM setting WHERE name = 'discard ' || schedule.session)
                """
        ).filter { !unreadable.contains($0) }
        var first: [SessionKey] = []
        var rest = limit
        for key in keys {
            let count = try Int.fetchOne(
                db.cachedStatement(sql: "SELECT count(*) FROM (SELECT 1 FROM checkpoint WHERE session = ? LIMIT ?)"),
                arguments: [key, rest + 1])
            guard let count, count <= rest else { break }
            rest -= count
            first.append(key)
        }
        return (first, Array(keys.dropFirst(first.count)))
    }

    private static func loadAccounts(into scheduler: inout Scheduler, from db: Database) throws {
        for row in try StoredRow.fetchAll(
            db, sql: "SELECT key, name, definition, block FROM account WHERE key <> ? ORDER BY key", arguments: [removedAccount])
        {
            // An account without a valid name or key is not loaded. Its sessions go into quarantine.
            guard let key = try? row.decode(AccountKey.self, atIndex: 0), key < .max, let name = try? row.decode(String.self, atIndex: 1)
            else {
                continue
            }
            do {
                let account: Account = try StoreCoding.decode(from: row.decode(String.self, atIndex: 2))
                scheduler.load(
                    key,
                    Scheduler.AccountEntry(
                        account: account, block: try StoreCoding.decodeIfPresent(from: row.decode(String?.self, atIndex: 3))))
            } catch {
                // The account's sessions keep their positions in the queue. If the app saves an account with this name, they can run again.
                let problem = TransferError(
                    .credentials, .internalFailure, "The account \"\(name)\" can't be read from the storage folder. Save it again.",
                    cause: "\(error)")
                scheduler.load(key, Scheduler.AccountEntry(account: Account(name, endpoints: []), block: AccountBlock(error: problem)))
            }
        }
    }

    private static func load(
        _ key: SessionKey, _ entry: Entry?, _ details: EntryDetails?, into scheduler: inout Scheduler,
        _ unreadable: inout [(SessionKey, String)]
    ) {
        guard let entry, scheduler.load(entry, details) else {
            unreadable.append((key, "The session in row \(key) has no valid key, ID, state, start priority or account."))
            return
        }
    }

    /// Returns the greatest session key in any table, including keys of removed sessions and of sessions without a row in the schedule.
    private static func lastSessionKey(in db: Database) throws -> SessionKey {
        try SessionKey.fetchOne(
            db,
            sql: """
                SELECT max(ifnull((SELECT max(key) FROM session), 0), ifnull((SELECT max(session) FROM quarantine), 0),
                    ifnull((SELECT max(held_by) FROM discard), 0))
                """) ?? 0
    }

    /// Returns the sessions with a tag, in the order of the queue. Omits drafts.
    package func sessions(tagged tag: String) async throws -> [SessionID] {
        try await read { db in
            try Data.fetchAll(
                db,
                sql:
                    "SELECT id FROM schedule JOIN session_tag ON session_tag.session = schedule.session WHERE tag = ? AND state <> 'draft' ORDER BY rank",
                arguments: [tag]
            ).compactMap { SessionID(data: $0) }
        }
    }
}
