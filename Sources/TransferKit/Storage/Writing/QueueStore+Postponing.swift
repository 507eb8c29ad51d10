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

    /// Abandons or postpones the due removals at the endpoints of a postponement. First abandons at most 10,000 removals whose deadline has
    /// passed, then postpones at most 10,000 of the remaining removals. If the deadlines of more than 10,000 removals have passed, the
    /// postponed removals can include some of them.
    static func postpone(_ postponement: DiscardPostponement, in db: Database) throws {
        let storedEndpoints = String(decoding: try JSONEncoder().encode(postponement.storedEndpoints), as: UTF8.self)
        let (due, expired) = (StoreCoding.encode(postponement.dueAt), StoreCoding.encode(postponement.expiredAt))
        try execute(db, DiscardQuery.expire, [due, storedEndpoints, expired])
        try execute(
            db, DiscardQuery.postpone,
            [due, storedEndpoints, StoreCoding.encode(postponement.until), postponement.backOffUntil.map(StoreCoding.encode) ?? 0])
    }

    // MARK: Corrections after changes to the clock

    /// The longest delay after which a process with a correct clock retries a removal, plus a tolerance for small corrections of the clock.
    static let longestDiscardDelay = RetryPolicy.longestRetryAfter + Duration.milliseconds(DiscardQuery.tolerance)

    /// The size of a clock change, in seconds, from which all deadlines that were stored before the change are implausible.
    static let largeClockChange = Double(DiscardQuery.longestOverdue + DiscardQuery.lifetime + DiscardQuery.tolerance) / 1_000

    /// Returns whether the deadline of a removal is plausible at a date. If not, the clock was wrong when the deadline was stored, the clock is
    /// wrong now, or no process has opened the queue for a long time.
    static func isPlausible(deadline: Date, at now: Date) -> Bool {
        let milliseconds = StoreCoding.encode(now)
        let range = (milliseconds - DiscardQuery.longestOverdue)...(milliseconds + DiscardQuery.lifetime + DiscardQuery.tolerance)
        return range.contains(StoreCoding.encode(deadline))
    }

    /// Corrects implausible deadlines of the removals with these keys. From now on, the queue retries the corrected removals for the lifetime of a
    /// new removal.
    func correctDeadlines(of keys: [Int64]) async throws {
        let keys = String(decoding: try JSONEncoder().encode(keys), as: UTF8.self)
        let now = StoreCoding.encode(clock.date())
        try await writeInPlace { db in try Self.execute(db, DiscardQuery.correctDeadlines, [keys, now]) }
    }

    /// Makes the removals with these keys due now, and ends the delays that their servers requested.
    func makeDue(_ keys: [Int64]) async throws {
        let keys = String(decoding: try JSONEncoder().encode(keys), as: UTF8.self)
        try await writeInPlace { db in try Self.execute(db, DiscardQuery.makeDue, [keys]) }
    }

    /// If a wrong clock postponed removals by more than ``longestDiscardDelay``, makes these removals due now.
    func correctImplausiblyLateDiscards() async throws {
        while try await read({ [clock] in try Self.hasImplausiblyLateDiscards(at: clock.date(), in: $0) }) {
            try await commit([.correctImplausiblyLateDiscards])
        }
    }

    /// Returns the latest date to which a process with a correct clock postpones a removal.
    private static func latestAttempt(_ now: Date) -> Int64 { StoreCoding.encode(now + longestDiscardDelay) }

    /// Returns whether removals were postponed beyond `latestAttempt`.
    static func hasImplausiblyLateDiscards(at now: Date, in db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: DiscardQuery.hasImplausiblyLate, arguments: [latestAttempt(now)]) ?? false
    }

    /// Makes removals due now if a wrong clock postponed them beyond `latestAttempt`, and corrects their implausible deadlines. Changes at most
    /// 10,000 removals.
    static func makeImplausiblyLateDiscardsDue(at now: Date, in db: Database) throws {
        try execute(db, DiscardQuery.clamp, [latestAttempt(now), StoreCoding.encode(now)])
    }
}
