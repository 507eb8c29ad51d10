package import Foundation

/// A session's row in the store; the short name that the engine uses within one storage folder.
package typealias SessionKey = Int64

/// An account's row in the store.
package typealias AccountKey = Int32

/// All that the scheduler can be told.
package enum Input: Sendable, Codable {
    /// What an app asks for.
    case command(Command)
    /// What a running session tells.
    case report(Report)
    /// What came of removing something at a server.
    case discarded(DiscardResult)
    /// Everything that is due to be removed at some servers has to wait.
    case postponed(DiscardPostponement)
    /// So many bytes are left on the disk that the store is on.
    case diskSpace(Int64)
    /// Time went on: something that was due later may be due now.
    case tick
}

/// What came of an attempt to remove something that a session left at a server.
package struct DiscardResult: Sendable, Codable {
    package var key: Int64
    /// Nil if there is nothing more to do.
    package var nextAttempt: Date?
    /// Until when the server wants to be left alone; nil if it did not ask for that.
    package var leftAloneUntil: Date?

    package init(key: Int64, nextAttempt: Date?, leftAloneUntil: Date? = nil) {
        self.key = key
        self.nextAttempt = nextAttempt
        self.leftAloneUntil = leftAloneUntil
    }
}

/// A point in time, on both clocks.
package struct Moment: Sendable, Hashable, Codable {
    /// Time since an arbitrary point; never jumps.
    package var uptime: Duration
    /// Time of day.
    package var date: Date

    package init(uptime: Duration, date: Date) {
        self.uptime = uptime
        self.date = date
    }

    package static func + (moment: Moment, duration: Duration) -> Moment {
        Moment(uptime: moment.uptime + duration, date: moment.date + duration)
    }
}
