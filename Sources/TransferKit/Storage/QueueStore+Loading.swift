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
        // Limits below 1 can only be damage; without a limit of its own the configuration's is in force.
        scheduler.load(
            sessionLimit: values["sessionLimit"].flatMap { $0 >= 1 ? Int(clamping: $0) : nil },
            rateLimit: values["rateLimit"].flatMap { $0 >= 1 ? $0 : nil }, orderRevision: UInt64(clamping: values["orderRevision"] ?? 0))
    }

    private static func loadAccounts(into scheduler: inout Scheduler, from db: Database) throws {
        for row in try Row.fetchAll(db, sql: "SELECT key, name, definition, block FROM account ORDER BY key") {
            // One without a name or a key can't be named by anybody; its sessions are set aside.
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
                // Its sessions keep their places; saving an account of this name mends it.
                let problem = TransferError(
                    .credentials, .internalFailure, "The account \"\(name)\" can't be read from the store. Save it again.",
                    cause: "\(error)")
                scheduler.load(key, Scheduler.AccountEntry(account: Account(name, endpoints: []), block: AccountBlock(error: problem)))
            }
        }
    }

    /// Keys, ranks and marks grow from what is stored; a damaged row must leave them room.
    private static let greatestNumber: Int64 = 1 << 62

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
            // Only conversions that can't fail: what a row holds may be anything, and a value that does not fit must not end the process.
            let key: SessionKey = row[0]
            guard (1..<greatestNumber).contains(key), let id = (row[1] as Data?).flatMap({ SessionID(data: $0) }),
                let rank = row[2] as Int64?, let account = (row[3] as Int64?).flatMap({ AccountKey(exactly: $0) }),
                let state = (row[4] as String?).flatMap(SessionState.init(rawValue:)),
                let lane = (row[5] as Int64?).flatMap({ UInt8(exactly: $0) }).flatMap(Entry.Lane.init(rawValue:)),
                scheduler.accounts[account] != nil, scheduler.roster.key(of: id) == nil
            else {
                unreadable.append((key, "The session in row \(key) has no valid ID, state or account."))
                continue
            }
            // A place beyond the ends is still a place; those that share one are told apart when the loading ends.
            var entry = Entry(id: id, key: key, rank: min(max(rank, -greatestNumber), greatestNumber), account: account, state: state)
            entry.lane = lane
            if row[7] as Bool? == true { entry.conditions.insert(.keepsPartial) }
            var details = EntryDetails()
            details.mark = (row[6] as Int64?).flatMap { (0..<greatestNumber).contains($0) ? $0 : nil } ?? 0
            details.displacedBy = row[8]
            details.notBefore = (row[9] as Int64?).map(StoreCoding.date)
            if let after = (row[10] as Data?).flatMap({ SessionID(data: $0) }) {
                details.dependency = SessionDependency(after, acceptsAnyEnd: row[11] as Bool? ?? false)
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
