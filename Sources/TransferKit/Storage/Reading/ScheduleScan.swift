import Foundation
import GRDB
import GRDBSQLite

/// A scan of the table `schedule` that calls SQLite's functions directly. There can be a million rows, and the opening of the queue waits
/// until all rows have been read.
///
/// Valid only within the database access that created it.
struct ScheduleScan {
    private let statement: Statement

    init(_ db: Database, _ keys: ClosedRange<SessionKey> = .min ... .max) throws {
        statement = try db.makeStatement(
            sql: """
                SELECT session, id, rank, account, state, lane, mark, keeps_partial, displaced_by, not_before, after_id, after_any,
                    deduplication_key, completed_at, needs_cheap_network, has_transferred, deadline,
                    deadline_from
                FROM schedule WHERE session BETWEEN ? AND ? ORDER BY session
                """)
        try statement.setArguments([keys.lowerBound, keys.upperBound])
    }

    func forEach(_ body: (ScheduledRow) -> Void) throws {
        // `statement` owns its SQLite handle, and outlives this call.
        let handle = unsafe statement.sqliteStatement
        var result = unsafe sqlite3_step(handle)
        while result == SQLITE_ROW {
            body(unsafe ScheduledRow(handle: handle))
            result = unsafe sqlite3_step(handle)
        }
        unsafe sqlite3_reset(handle)
        guard result == SQLITE_DONE else {
            throw DatabaseError(resultCode: ResultCode(rawValue: result), message: "The schedule can't be read.")
        }
    }

    /// The columns of the current row (sqlite.org/c3ref/column_blob.html), valid until the next step.
    @safe struct ScheduledRow {
        /// The exclusive upper limit of keys and marks. New rows get numbers above the highest stored number. This limit leaves room for
        /// new numbers even if a row is damaged.
        private static let greatestNumber: Int64 = 1 << 62
        /// The greatest rank; the lowest rank is its negative. The difference of any two ranks must not overflow.
        private static let greatestRank: Int64 = 1 << 61
        /// Replaces a dependency that is damaged in the database. No session has this ID.
        private static let missingSession = SessionID(uuid: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))

        fileprivate let handle: OpaquePointer?

        var key: SessionKey { integer(0) }

        /// The entry; nil if the row has invalid values.
        var entry: Entry? {
            let key = key
            guard (1..<Self.greatestNumber).contains(key), let id = sessionID(1), let account = AccountKey(exactly: integer(3)),
                let state = state(4),
                let startPriority = UInt8(exactly: integer(5)).flatMap(Entry.StartPriority.init(rawValue:))
            else { return nil }
            var entry = Entry(
                id: id, key: key, rank: min(max(integer(2), -Self.greatestRank), Self.greatestRank), account: account, state: state)
            entry.startPriority = startPriority
            if integer(7) != 0 { entry.conditions.insert(.keepsPartial) }
            if integer(14) != 0 { entry.conditions.insert(.needsCheapNetwork) }
            if integer(15) != 0 { entry.conditions.insert(.hasTransferred) }
            return entry
        }

        var details: EntryDetails? {
            guard integer(6) != 0 || !(isNull(8) && isNull(9) && isNull(10) && isNull(12) && isNull(13) && isNull(16) && isNull(17)) else {
                return nil
            }
            var details = EntryDetails()
            let mark = integer(6)
            details.mark = (0..<Self.greatestNumber).contains(mark) ? mark : 0
            details.displacedBy = optionalInteger(8)
            details.notBefore = optionalInteger(9).map(StoreCoding.date)
            if !isNull(10) { details.dependency = SessionDependency(sessionID(10) ?? Self.missingSession, acceptsAnyEnd: integer(11) != 0) }
            details.deduplicationKey = text(12)
            details.completedAt = optionalInteger(13).map(StoreCoding.date)
            details.deadline = optionalInteger(16).map { .milliseconds($0) }
            details.deadlineFrom = optionalInteger(17).map(StoreCoding.date)
            return details
        }

        private func integer(_ column: Int32) -> Int64 {
            unsafe sqlite3_column_int64(handle, column)
        }

        private func isNull(_ column: Int32) -> Bool {
            unsafe sqlite3_column_type(handle, column) == SQLITE_NULL
        }

        private func optionalInteger(_ column: Int32) -> Int64? {
            isNull(column) ? nil : integer(column)
        }

        private func text(_ column: Int32) -> String? {
            unsafe sqlite3_column_text(handle, column).map { unsafe String(cString: $0) }
        }

        /// Compares the C string with the most frequent state first, because creating a Swift string for each of a million rows would take too long.
        private func state(_ column: Int32) -> SessionState? {
            guard let text = unsafe sqlite3_column_text(handle, column) else { return nil }
            if unsafe text[0] == UInt8(ascii: "w"),
                unsafe strcmp(UnsafeRawPointer(text).assumingMemoryBound(to: CChar.self), "waiting") == 0
            {
                return .waiting
            }
            return unsafe SessionState(rawValue: String(cString: text))
        }

        private func sessionID(_ column: Int32) -> SessionID? {
            guard unsafe sqlite3_column_bytes(handle, column) == 16, let bytes = unsafe sqlite3_column_blob(handle, column) else {
                return nil
            }
            return unsafe SessionID(uuid: UUID(uuid: bytes.loadUnaligned(as: uuid_t.self)))
        }
    }
}
