package import Foundation
import GRDB
import TransferCore

/// Puts off all that is due to be removed at some endpoints.
package struct DiscardPostponement: Sendable, Codable {
    /// The endpoints as the store has them; see ``QueueStore/placesOfDueDiscards(at:isLocalOnly:)``.
    package var places: [String]
    /// What is due at this date is meant.
    package var dueAt: Date
    /// What was to be given up by this date is given up.
    package var expiredAt: Date
    /// When it is due again.
    package var until: Date
    /// Until when the servers want to be left alone; nil if they did not ask for that.
    package var leftAloneUntil: Date?
}

extension QueueStore {
    /// The endpoints with something due, as the store has them.
    ///
    /// - Parameter isLocalOnly: Whether only parts on this machine are wanted.
    func placesOfDueDiscards(at date: Date, isLocalOnly: Bool) async throws -> [String] {
        try await read { db in
            try String.fetchAll(db, sql: DiscardQuery.places(isLocalOnly: isLocalOnly), arguments: [StoreCoding.encode(date)])
        }
    }

    /// Puts off, or gives up, at most 10,000 removals of each kind.
    static func postpone(_ postponement: DiscardPostponement, in db: Database) throws {
        let places = String(decoding: try JSONEncoder().encode(postponement.places), as: UTF8.self)
        let (due, expired) = (StoreCoding.encode(postponement.dueAt), StoreCoding.encode(postponement.expiredAt))
        try execute(db, DiscardQuery.expire, [due, places, expired])
        try execute(
            db, DiscardQuery.postpone,
            [due, places, StoreCoding.encode(postponement.until), postponement.leftAloneUntil.map(StoreCoding.encode) ?? 0])
    }

    /// The farthest date that a process puts a removal off to.
    private static func farthestAttempt(_ now: Date) -> Int64 {
        StoreCoding.encode(now + RetryPolicy.longestRetryAfter + .seconds(3_600))
    }

    static func hasFarDiscards(at now: Date, in db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: DiscardQuery.hasFar, arguments: [farthestAttempt(now)]) ?? false
    }

    /// Makes at most 10,000 removals due that are put off beyond that: the date was another one then.
    static func clampDiscards(at now: Date, in db: Database) throws {
        try execute(db, DiscardQuery.clamp, [farthestAttempt(now), StoreCoding.encode(now)])
    }
}
