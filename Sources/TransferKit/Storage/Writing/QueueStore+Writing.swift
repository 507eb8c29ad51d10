import Foundation
import GRDB
import TransferCore

extension QueueStore {
    /// Makes all changes in a list durable, or none of them.
    ///
    /// GRDB rolls back the transactions of cancelled tasks. The queue's writer therefore commits from a task that is never cancelled. All other
    /// callers can repeat their changes after a cancellation.
    package func commit(_ writes: [StoreWrite]) async throws(QueueError) {
        do throws(StoreRefusal) {
            try await commitIdentifyingFailure(writes)
        } catch {
            throw error.error
        }
    }

    /// Makes a list of changes durable, like ``commit(_:)``. If a single change is responsible for an error, the error names the change.
    ///
    /// - Returns: The maintenance that the changes require later.
    @discardableResult
    package func commitIdentifyingFailure(_ writes: [StoreWrite]) async throws(StoreRefusal) -> PendingMaintenance {
        guard !writes.isEmpty else { return PendingMaintenance() }
        let now = clock.date()
        let (freed, pending): ([Data], PendingMaintenance)
        do {
            (freed, pending) = try await writeInPlace { [rowsPerSweep] db in
                var transaction = StoreTransaction(now: now, rowsToSweep: rowsPerSweep)
                var totals = TotalsUpdater(db)
                for (index, write) in writes.enumerated() {
                    do {
                        try totals.willApply(write)
                        transaction.freed += try Self.spoolFilesFreed(by: write, in: db)
                        try Self.apply(write, to: db, &transaction)
                    } catch {
                        throw RefusedWrite(index: index, reason: error)
                    }
                }
                do {
                    try totals.writeTotals()
                } catch  where RefusedWrite(index: 0, reason: error).isPermanent {
                    // If the totals can't be updated because of a damaged row, the changes are still committed.
                }
                // If the outbox can't be read, the changes are still committed, and removals are assumed to be due.
                let hasDiscards = writes.contains(where: \.mayDiscard) && (try? Self.hasDueDiscards(at: now, in: db)) ?? true
                return (transaction.freed, PendingMaintenance(hasDeferredWork: transaction.leavesDeferredWork, hasDueDiscards: hasDiscards))
            }
        } catch let refused as RefusedWrite {
            throw StoreRefusal(error: Self.storageError(refused.reason, folder: folder), culprit: refused.culprit)
        } catch {
            throw StoreRefusal(error: Self.storageError(error, folder: folder))
        }
        await spool.remove(freed)
        return pending
    }

    /// Runs a transaction. Before and after the transaction, checks that the open database is still the file at its path; see
    /// ``OpenDatabaseFile``. After the database is open, all changes use this method.
    func writeInPlace<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await pool.writeWithoutTransaction { [databaseFile] db in
            try databaseFile.check()
            var value: Value?
            try db.inTransaction {
                value = try body(db)
                return .commit
            }
            try databaseFile.check(hasCommitted: true)
            guard let value else { throw CancellationError() }
            return value
        }
    }

    private static func apply(_ write: StoreWrite, to db: Database, _ transaction: inout StoreTransaction) throws {
        switch write {
        case .saveAccount(let key, let account):
            try execute(
                db,
                """
                INSERT INTO account(key, name, definition) VALUES (?, ?, ?)
                ON CONFLICT(key) DO UPDATE SET definition = excluded.definition, block = NULL
                """,
                [key, account.name, try StoreCoding.encode(account)])
        case .deleteAccount(let key):
            try execute(db, "DELETE FROM account WHERE key = ?", [key])
        case .blockAccount(let key, let block):
            try execute(db, "UPDATE account SET block = ? WHERE key = ?", [try StoreCoding.encodeIfPresent(block), key])
        case .settings(let settings): try store(settings, in: db)
        case .insertSessions(let sessions):
            var insertion = try SessionInsertion(db)
            try sessions.forEach { try insertion.insert($0, $1, createdAt: sessions.createdAt, into: db) }
        case .schedule(let row):
            try schedule(row, in: db)
        case .updateSession(let key, let update):
            try self.update(key, update, in: db)
        case .changeAccount(let key, let account):
            try changeAccount(of: key, to: account, &transaction, in: db)
        case .addItems(let key, let items):
            try addItems(items, to: key, in: db)
        case .replaceItems(let key, let selection, let rows, let items):
            try replaceItems(selection, rows, with: items, of: key, &transaction, in: db)
        case .expansion(let key, let step):
            try apply(step, to: key, in: db)
        case .resetSession(let key, let isWhole):
            try reset(key, isWhole: isWhole, &transaction, in: db)
        case .continueReset(let key):
            try continueReset(key, &transaction, in: db)
        case .deleteSession(let key, let isRunning):
            try remove(key, isRunning: isRunning, &transaction, in: db)
        case .dropCheckpoints(let key):
            try dropCheckpoints(of: key, &transaction, in: db)
        case .quarantine(let key, let reason):
            let marks = try marks(of: key, in: db)
            try quarantine(key, reason, &transaction, in: db)
            try keep(marks, inQuarantineOf: key, in: db)
        case .restoreSession(_, let number):
            try restoreSession(number, in: db)
        case .beginSession(let key, let date):
            try execute(
                db,
                """
                UPDATE session SET attempts = min(max(attempts, 0), \(maximumStoredAttempts)) + 1,
                    started_at = ifnull(started_at, max(created_at, ?1)) WHERE key = ?2
                """,
                [StoreCoding.encode(date), key])
        case .setEndpoint(let key, let address, let transport):
            try execute(db, "UPDATE session SET endpoint = ?, transport = ? WHERE key = ?", [address, transport.rawValue, key])
        case .attemptFailed(let key, let error, let isRepeated):
            try execute(
                db, "UPDATE session SET error = ?, attempts = min(max(attempts, 0), \(maximumStoredAttempts)) + ? WHERE key = ?",
                [try StoreCoding.encode(error), isRepeated ? 1 : 0, key])
        case .endSession(let key, let error, let date):
            try execute(
                // The clock may have been set back, but a session must not end before it began.
                db, "UPDATE session SET error = ?, ended_at = max(ifnull(started_at, created_at), ?) WHERE key = ?",
                [try StoreCoding.encodeIfPresent(error), StoreCoding.encode(date), key])
        case .file(let key, let position, let event):
            try apply(event, to: key, position: position, at: transaction.now, in: db)
        case .ran(let key, let session, let queue):
            try addRunningTime(key, session, queue: queue, in: db)
        case .addTimes(let key, let times):
            try addTimes(times, of: key, in: db)
        case .discardPartial(let key):
            try discardPartial(of: key, &transaction, in: db)
        case .continueDiscard(let key):
            if try has(.discard, of: key, in: db) { try discardPartial(of: key, &transaction, in: db) }
        case .holdDiscard(let key, let position, let checkpoint, let endpoint):
            try holdDiscard(checkpoint, at: endpoint, of: key, position: position, transaction.now, in: db)
        case .dropDiscard(let key, let position, let endpoint):
            try dropDiscard(of: key, position: position, endpoint, in: db)
        case .releaseDiscards(let key):
            try release(key, &transaction, in: db)
        case .discarded(let key):
            try execute(db, "DELETE FROM discard WHERE key = ?", [key])
        case .discardFailed(let key, let nextAttempt, let backOffUntil):
            try execute(
                db,
                "UPDATE discard SET attempts = min(max(attempts, 0), \(maximumStoredAttempts)) + 1, next_attempt_at = ?, left_alone_until = ? WHERE key = ?",
                [StoreCoding.encode(nextAttempt), backOffUntil.map(StoreCoding.encode) ?? 0, key])
        case .postponeDiscards(let postponement):
            try postpone(postponement, in: db)
        case .correctImplausiblyLateDiscards:
            try makeImplausiblyLateDiscardsDue(at: transaction.now, in: db)
        case .clock(let seen, let steady):
            try store(seen: seen, steady: steady, in: db)
        case .events(let events, let limit):
            try append(events, keeping: limit, to: db)
        }
    }

    static let scheduleInsertion = """
        INSERT INTO schedule(session, id, rank, account, state, lane, mark, keeps_partial, displaced_by, not_before, after_id, after_any,
            deduplication_key, completed_at, needs_cheap_network, has_transferred, deadline, deadline_from)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """

    private static let scheduleUpdate = """
        \(scheduleInsertion) ON CONFLICT DO UPDATE SET rank = excluded.rank, account = excluded.account, state = excluded.state,
            lane = excluded.lane, mark = excluded.mark, keeps_partial = excluded.keeps_partial, displaced_by = excluded.displaced_by,
            not_before = excluded.not_before, after_id = excluded.after_id, after_any = excluded.after_any,
            completed_at = excluded.completed_at, needs_cheap_network = excluded.needs_cheap_network,
            has_transferred = excluded.has_transferred, deadline = excluded.deadline, deadline_from = excluded.deadline_from
        """

    private static func schedule(_ row: ScheduleRow, in db: Database) throws {
        let (entry, details) = (row.entry, row.details)
        try execute(
            db, scheduleUpdate,
            [
                entry.key, entry.id.data, entry.rank, entry.account, entry.state.rawValue, Int(entry.startPriority.rawValue), details.mark,
                entry.conditions.contains(.keepsPartial), details.displacedBy, details.notBefore.map(StoreCoding.encode),
                details.dependency?.session.data, details.dependency?.acceptsAnyEnd, details.deduplicationKey,
                details.completedAt.map(StoreCoding.encode), entry.conditions.contains(.needsCheapNetwork),
                entry.conditions.contains(.hasTransferred), details.deadline.map(StoreCoding.encode),
                details.deadlineFrom.map(StoreCoding.encode),
            ])
    }

    static func setTags(_ tags: [String], of key: SessionKey, in db: Database) throws {
        for tag in tags { try execute(db, "INSERT OR IGNORE INTO session_tag(tag, session) VALUES (?, ?)", [tag, key]) }
    }

    private static func update(_ key: SessionKey, _ update: SessionUpdate, in db: Database) throws {
        if let tags = update.tags {
            try execute(db, "DELETE FROM session_tag WHERE session = ?", [key])
            try setTags(tags, of: key, in: db)
        }
        if let context = update.context { try execute(db, "UPDATE session SET context = ? WHERE key = ?", [context.value, key]) }
        if let name = update.name { try execute(db, "UPDATE session SET name = ? WHERE key = ?", [name, key]) }
        let text = try String.fetchOne(db, sql: "SELECT options FROM session WHERE key = ?", arguments: [key])
        let before = try StoreCoding.decodeIfPresent(SessionOptions.self, from: text) ?? SessionOptions()
        var options = before
        update.apply(to: &options)
        guard options != before else { return }
        try execute(db, "UPDATE session SET options = ? WHERE key = ?", [try StoreCoding.encode(options), key])
    }

    /// Assigns another account to a session that has transferred nothing. Moves the session's checkpoints, which cover no bytes, into the
    /// outbox (``DiscardQuery``), with the endpoints of the old account.
    private static func changeAccount(
        of key: SessionKey, to account: AccountKey, _ transaction: inout StoreTransaction, in db: Database
    ) throws {
        let before = try AccountKey.fetchOne(db, sql: "SELECT account FROM session WHERE key = ?", arguments: [key])
        try discardPartial(of: key, at: before, &transaction, in: db)
        try execute(db, "UPDATE session SET account = ?, endpoint = NULL, transport = NULL WHERE key = ?", [account, key])
    }

    static func execute(_ db: Database, _ sql: String, _ arguments: StatementArguments) throws {
        try db.cachedStatement(sql: sql).execute(arguments: arguments)
    }
}
