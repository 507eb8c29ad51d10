package import Foundation

/// The store's row ID of a session. Identifies the session within one storage folder.
package typealias SessionKey = Int64

/// The store's row ID of an account.
package typealias AccountKey = Int32

/// An input of the scheduler.
package enum Input: Sendable, Codable {
    /// A command of the app.
    case command(Command)
    /// An event of a run.
    case report(RunEvent)
    /// The result of a removal on a server.
    case discarded(DiscardResult)
    /// The postponement of all removals that are due on some servers.
    case postponed(DiscardPostponement)
    /// The free space on the store's disk, in bytes.
    case diskSpace(Int64)
    /// The passage of time: sessions may be due now.
    case tick
}

/// The result of an attempt to remove a session's content on a server.
package struct DiscardResult: Sendable, Codable {
    package var key: Int64
    /// The time of the next attempt; nil if the removal is finished.
    package var nextAttempt: Date?
    /// The time until which the server asked to back off; nil if it did not.
    package var backOffUntil: Date?

    package init(key: Int64, nextAttempt: Date?, backOffUntil: Date? = nil) {
        self.key = key
        self.nextAttempt = nextAttempt
        self.backOffUntil = backOffUntil
    }
}

/// A postponement of all due removals at some endpoints.
package struct DiscardPostponement: Sendable, Codable {
    /// The endpoints in their stored form; see ``QueueStore/placesOfDueDiscards(at:isLocalOnly:)``.
    package var places: [String]
    /// The date that decides which removals are due.
    package var dueAt: Date
    /// Removals with a deadline before or at this date are given up.
    package var expiredAt: Date
    /// The date when the other removals are due again.
    package var until: Date
    /// The end of the time for which the servers asked the queue to back off; nil if they did not.
    package var backOffUntil: Date?
}
