import Foundation
import GRDB
import TransferCore

extension QueueStore {
    /// Fills a scheduler with all that the store knows. What can't be read is set aside.
    ///
    /// - Returns: The scheduler, and a sentence for each row that was set aside.
    package func load(_ settings: Scheduler.Settings) async throws -> (Scheduler, quarantined: [String]) {
        let (scheduler, unreadable, recovery) = try await read { db in
            var scheduler = Scheduler(settings)
            var unreadable: [(SessionKey, String)] = []
            try Self.loadSettings(into: &scheduler, from: db)
            try Self.loadAccounts(into: &scheduler, from: db)
            try Self.loadSessions(into: &scheduler, unreadable: &unreadable, from: db)
            var recovery = scheduler.finishLoading()
            recovery += unreadable.map { .quarantine($0.0, $0.1) }
            // Killed between the end of a cancelled run and what follows from it.
            recovery += try SessionKey.fetchAll(
                db,
                sql: """
                    SELECT DISTINCT checkpoint.session FROM checkpoint JOIN schedule ON schedule.session = checkpoint.session
                    WHERE state = 'cancelled' AND NOT keeps_partial
                    """
            ).map { .discardPartial($0) }
            return (scheduler, unreadable, recovery)
        }
        try await commit(recovery)
        return (scheduler, unreadable.map(\.1))
    }

    private static func loadSettings(into scheduler: inout Scheduler, from db: Database) throws {
        var values: [String: Int64] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT name, value FROM setting WHERE value IS NOT NULL") { values[row[0]] = row[1] }
        scheduler.load(
            sessionLimit: values["sessionLimit"].map { Int(clamping: $0) }, rateLimit: values["rateLimit"],
            orderRevision: UInt64(clamping: values["orderRevision"] ?? 0))
    }

    private static func loadAccounts(into scheduler: inout Scheduler, from db: Database) throws {
        for row in try Row.fetchAll(db, sql: "SELECT key, name, definition, block FROM account ORDER BY key") {
            do {
                let account: Account = try StoreCoding.decode(from: row[2] as String)
                scheduler.load(
                    row[0], Scheduler.AccountEntry(account: account, block: try StoreCoding.decodeIfPresent(from: row[3] as String?)))
            } catch {
                // Its sessions keep their places; saving an account of this name mends it.
                let name: String = row[1]
                let problem = TransferError(
                    .credentials, .internalFailure, "The account \"\(name)\" can't be read from the store. Save it again.", cause: "\(error)")
                scheduler.load(row[0], Scheduler.AccountEntry(account: Account(name, endpoints: []), block: AccountBlock(error: problem)))
            }
        }
    }

    private static func loadSessions(
        into scheduler: inout Scheduler, unreadable: inout [(SessionKey, String)], from db: Database
    ) throws {
        scheduler.reserveCapacity(try Int.fetchOne(db, sql: "SELECT count(*) FROM schedule") ?? 0)
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT session, id, rank, account, state, lane, mark, keeps_partial, displaced_by, not_before, after_id, after_any,
                    deduplication_key, completed_at
                FROM schedule ORDER BY session
                """)
        while let row = try rows.next() {
            let key: SessionKey = row[0]
            guard let id = SessionID(data: row[1]), let state = SessionState(rawValue: row[4]),
                let lane = Entry.Lane(rawValue: row[5]), scheduler.accounts[row[3]] != nil, scheduler.roster.key(of: id) == nil
            else {
                unreadable.append((key, "The session in row \(key) has no valid ID, state or account."))
                continue
            }
            var entry = Entry(id: id, key: key, rank: row[2], account: row[3], state: state)
            entry.lane = lane
            if row[7] { entry.conditions.insert(.keepsPartial) }
            var details = EntryDetails()
            details.mark = row[6]
            details.displacedBy = row[8]
            details.notBefore = (row[9] as Int64?).map(StoreCoding.date)
            if let after = (row[10] as Data?).flatMap({ SessionID(data: $0) }) {
                details.dependency = SessionDependency(after, acceptsAnyEnd: row[11] ?? false)
            }
            details.deduplicationKey = row[12]
            details.completedAt = (row[13] as Int64?).map(StoreCoding.date)
            scheduler.load(ScheduleRow(entry: entry, details: details))
        }
    }

    /// The sessions with a tag.
    package func sessions(tagged tag: String) async throws -> [SessionID] {
        try await read { db in
            try Data.fetchAll(
                db,
                sql: "SELECT id FROM schedule JOIN session_tag ON session_tag.session = schedule.session WHERE tag = ? ORDER BY rank",
                arguments: [tag]
            ).compactMap { SessionID(data: $0) }
        }
    }
}
