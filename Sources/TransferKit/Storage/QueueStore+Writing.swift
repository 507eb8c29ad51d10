import Foundation
import GRDB
import TransferCore

extension QueueStore {
    /// Makes a list of changes durable, all or none.
    ///
    /// Called by the queue's one writer, from a task that is never cancelled: GRDB rolls back what a cancelled task writes.
    package func commit(_ writes: [StoreWrite]) async throws(QueueError) {
        guard !writes.isEmpty else { return }
        do {
            try await pool.write { db in
                for write in writes { try Self.apply(write, to: db) }
            }
        } catch {
            throw Self.storageError(error, folder: folder)
        }
    }

    private static func apply(_ write: StoreWrite, to db: Database) throws {
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
        case .insertSession(let key, let rank, let account, let draft, let createdAt):
            try insert(draft, key: key, rank: rank, account: account, createdAt: createdAt, into: db)
        case .deleteSession(let key):
            try execute(db, "DELETE FROM session WHERE key = ?", [key])
        case .setRunning(let key, let date):
            try execute(
                db,
                """
                UPDATE session SET state = ?, interrupted = 0, attempts = attempts + 1, started_at = ifnull(started_at, ?) WHERE key = ?
                """, [SessionState.running.rawValue, StoreCoding.encode(date), key])
        case .setWaiting(let key, let isInterrupted):
            try execute(
                db, "UPDATE session SET state = ?, interrupted = ? WHERE key = ?", [SessionState.waiting.rawValue, isInterrupted, key])
        case .setEndpoint(let key, let address, let transport):
            try execute(db, "UPDATE session SET endpoint = ?, transport = ? WHERE key = ?", [address, transport.rawValue, key])
        case .attemptFailed(let key, let error):
            try execute(
                db, "UPDATE session SET error = ?, attempts = attempts + (state = 'running') WHERE key = ?",
                [try StoreCoding.encode(error), key])
        case .endSession(let key, let state, let error, let date):
            try execute(
                db, "UPDATE session SET state = ?, error = ?, ended_at = ? WHERE key = ?",
                [state.rawValue, try StoreCoding.encodeIfPresent(error), StoreCoding.encode(date), key])
        case .file(let key, let position, let report):
            try apply(report, to: key, position: position, in: db)
        case .events(let events, let limit):
            try append(events, keeping: limit, to: db)
        }
    }

    private static func insert(
        _ draft: SessionDraft, key: SessionKey, rank: Int64, account: AccountKey, createdAt: Date, into db: Database
    ) throws {
        try execute(
            db,
            """
            INSERT INTO session(key, id, rank, account, state, name, direction, tags, context, options, files, bytes_total, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                key, draft.id.data, rank, account, SessionState.waiting.rawValue, draft.name, draft.direction.rawValue,
                try StoreCoding.encode(draft.tags), draft.context, try StoreCoding.encode(draft.options), draft.items.count,
                draft.items.reduce(0) { $0 + $1.size }, StoreCoding.encode(createdAt),
            ])
        try insertItems(draft.items, of: key, in: db)
    }

    static func execute(_ db: Database, _ sql: String, _ arguments: StatementArguments) throws {
        try db.cachedStatement(sql: sql).execute(arguments: arguments)
    }
}
