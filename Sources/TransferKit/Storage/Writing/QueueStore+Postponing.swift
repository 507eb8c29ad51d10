import Foundation
import GRDB
import TransferCore

extension QueueStore {
    /// Returns the endpoints with due removals, in their stored form.
    ///
    /// - Parameter isLocalOnly: Whether to return only the endpoints of part files on this machine.
    func endpointsOfDueDiscards(at date: Date, isLocalOnly: Bool) async throws -> [String] {
        try await read { db in
            try String.fetchAll(db, sql: DiscardQuery.dueEndpoints(isLocalOnly: isLocalOnly), arguments: [StoreCoding.encode(date)])
        }
    }

    /// Abandons at most 10,000 removals whose deadline has passed, and postpones at most 10,000 of the other removals.
    static func postpone(_ postponement: DiscardPostponement, in db: Database) throws {
        let storedEndpoints = String(decoding: try JSONEncoder().encode(postponement.storedEndpoints), as: UTF8.self)
        let (due, expired) = (StoreCoding.encode(postponement.dueAt), StoreCoding.encode(postponement.expiredAt))
        try execute(db, DiscardQuery.expire, [due, storedEndpoints, expired])
        try execute(
            db, DiscardQuery.postpone,
            [due, storedEndpoints, StoreCoding.encode(postponement.until), postponement.backOffUntil.map(StoreCoding.encode) ?? 0])
    }

    /// Returns the latest date to which a process with a correct clock postpones a removal.
    private static func latestAttempt(_ now: Date) -> Int64 {
        StoreCoding.encode(now + RetryPolicy.longestRetryAfter + .seconds(3_600))
    }

    /// Returns whether removals were postponed beyond `latestAttempt`.
    static func hasFarDiscards(at now: Date, in db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: DiscardQuery.hasFar, arguments: [latestAttempt(now)]) ?? false
    }

    /// Makes removals due now if a wrong clock postponed them beyond `latestAttempt`. Changes at most 10,000 removals.
    static func clampDiscards(at now: Date, in db: Database) throws {
        try execute(db, DiscardQuery.clamp, [latestAttempt(now), StoreCoding.encode(now)])
    }
}
