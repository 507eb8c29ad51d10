package import Foundation

/// The row ID of a session in the database. Identifies the session within one storage folder.
package typealias SessionKey = Int64

/// The row ID of an account in the database.
package typealias AccountKey = Int32

/// An input of the scheduler.
package enum Input: Sendable, Codable {
    case command(Command)
    case report(RunEvent)
    case discarded(DiscardResult)
    /// A postponement of removals that are due at certain endpoints.
    case postponed(DiscardPostponement)
    /// The free space on the disk of the storage folder, in bytes.
    case diskSpace(Int64)
    /// A reminder that time has passed, so sessions may be due now.
    case tick
}

/// The result of an attempt at a pending removal (``PendingDiscard``).
package struct DiscardResult: Sendable, Codable {
    package var key: Int64
    /// The time of the next attempt; nil if the removal is finished.
    package var nextAttempt: Date?
    /// The time until which the server asked the queue to back off; nil without such a request.
    package var backOffUntil: Date?

    /// Whether the removal may have freed space on a disk of this machine.
    package var freesSpace: Bool

    package init(key: Int64, nextAttempt: Date?, backOffUntil: Date? = nil, freesSpace: Bool = false) {
        self.key = key
        self.freesSpace = freesSpace
        self.nextAttempt = nextAttempt
        self.backOffUntil = backOffUntil
    }
}

/// A postponement of due removals at some endpoints. One postponement changes a limited number of removals; see
/// ``StoreWrite/postponeDiscards(_:)``.
package struct DiscardPostponement: Sendable, Codable {
    /// The endpoints in their stored form; see ``QueueStore/endpointsOfDueDiscards(at:isLocalOnly:)``.
    package var storedEndpoints: [String]
    /// The current date. Postpones only removals that are due by this date.
    package var dueAt: Date
    /// Removals whose deadline is at or before this date are abandoned instead of being postponed.
    package var expiredAt: Date
    /// The date at which the postponed removals are due again.
    package var until: Date
    /// The time until which the servers asked the queue to back off; nil without such a request.
    package var backOffUntil: Date?
}
