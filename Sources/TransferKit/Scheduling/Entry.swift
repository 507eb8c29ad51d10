package import Foundation
package import TransferCore

/// What the scheduler knows of every session: small, as there may be a million.
package struct Entry: SessionTableElement, Equatable {
    package var id: SessionID
    package var key: SessionKey
    package var rank: Int64
    package var account: AccountKey
    /// What the session is, or will be once its run has let go; this is what is stored.
    package var state: SessionState
    package var lane = Lane.none
    package var conditions: Conditions = []

    package init(id: SessionID, key: SessionKey, rank: Int64, account: AccountKey, state: SessionState) {
        self.id = id
        self.key = key
        self.rank = rank
        self.account = account
        self.state = state
    }

    /// Whether it uses a slot. A paused one that was displaced does not.
    var holdsSlot: Bool {
        state == .running || conditions.contains(.ending) || (state == .paused && !conditions.contains(.displaced))
    }

    /// Whether its slot is free once its run has let go.
    var freesSlot: Bool {
        conditions.contains(.ending) && state != .running && !(state == .paused && !conditions.contains(.displaced))
    }

    /// Whether it waits, and for nothing of its own.
    var isEligible: Bool {
        state == .waiting && conditions.isDisjoint(with: Conditions.preventing.union(.ending))
    }

    /// Whether it waits for nothing of its own but a time to come. One that can't be read needs a person, though it is tried again.
    var isTimed: Bool {
        state == .waiting && !conditions.isDisjoint(with: .timed)
            && conditions.isDisjoint(with: Conditions.preventing.subtracting(.timed).union(.unreadable))
    }

    /// Whether it claims the next slot that becomes free.
    var isClaimant: Bool {
        state == .waiting && lane == .now && conditions.isDisjoint(with: .preventing)
    }

    /// Which line it stands in while it waits for nothing of its own.
    var line: Roster.LineKey { Roster.LineKey(account: account, needsCheapNetwork: conditions.contains(.needsCheapNetwork)) }

    /// What is shown: a run that has yet to let go still runs.
    var shownState: SessionState {
        conditions.contains(.ending) ? .running : state
    }

    /// Why a session goes before those of the order of the queue; the lower one goes first.
    package enum Lane: UInt8, Sendable, Codable, Comparable {
        /// The app ran or resumed it.
        case now = 0
        /// The app wants it to be next.
        case next = 1
        /// The one that was run in its place gave the slot up.
        case letGo = 2
        /// It ran when the queue or the process was stopped.
        case interrupted = 3
        /// It goes by the order of the queue.
        case none = 4

        package static func < (left: Lane, right: Lane) -> Bool { left.rawValue < right.rawValue }
    }

    /// What is true of a session beside its state.
    package struct Conditions: OptionSet, Sendable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The app stopped it; it has to let another one go first.
        static let stopped = Conditions(rawValue: 1)
        /// Another one was run in its place.
        package static let displaced = Conditions(rawValue: 2)
        /// Its next attempt is due later.
        static let backoff = Conditions(rawValue: 4)
        /// It is not to start yet.
        static let early = Conditions(rawValue: 8)
        /// It comes after another one that has not ended as it should.
        static let dependent = Conditions(rawValue: 16)
        /// This machine lacks what it needs.
        static let noSpace = Conditions(rawValue: 32)
        /// Its run was told to end and has not let go yet.
        package static let ending = Conditions(rawValue: 64)
        /// What a cancelled one left at its server stays there.
        package static let keepsPartial = Conditions(rawValue: 128)
        /// Its transport is connected in the present run.
        static let connected = Conditions(rawValue: 256)
        /// Items were added since its present run began.
        static let hasNewItems = Conditions(rawValue: 512)

        /// It is not to use a network that is expensive.
        package static let needsCheapNetwork = Conditions(rawValue: 1024)

        /// Its last run was abandoned and has not ended: no other one begins before it has.
        static let runNotEnded = Conditions(rawValue: 2048)

        /// The damaged store can't say what it has to transfer. It also waits for its next attempt.
        static let unreadable = Conditions(rawValue: 4096)

        static let preventing: Conditions = [.stopped, .displaced, .backoff, .early, .dependent, .noSpace, .runNotEnded]
        static let timed: Conditions = [.stopped, .backoff, .early]
        /// What does not outlive a process.
        static let transient: Conditions = [.stopped, .backoff, .noSpace, .ending, .connected, .hasNewItems, .runNotEnded, .unreadable]
    }
}

/// What the scheduler knows of few sessions only.
package struct EntryDetails: Sendable, Equatable {
    /// Within a lane, the higher one goes first in ``Entry/Lane/now`` and ``Entry/Lane/next``.
    package var mark: Int64 = 0
    /// The number of the run that has not let go yet; 0 for none.
    package var run: UInt64 = 0
    package var retryAt: Moment?
    package var notBefore: Date?
    package var dependency: SessionDependency?
    package var displacedBy: SessionKey?
    /// Until when a stopped session leaves the slot to others that there may be.
    package var stoppedUntil: Duration?
    package var spaceCheckAt: Duration?
    package var shortage: TransferError?
    package var deduplicationKey: String?
    /// When it completed.
    package var completedAt: Date?
    /// The same on the clock of ``Scheduler/steadyDate(at:)``, which decides how long the session is kept. Not stored.
    package var keptSince: Date?

    static let none = EntryDetails()
}

/// A session as the store keeps it for the scheduler.
package struct ScheduleRow: Sendable, Equatable {
    package var entry: Entry
    package var details: EntryDetails

    package init(entry: Entry, details: EntryDetails = EntryDetails()) {
        self.entry = entry
        self.details = details
    }

    /// Without what does not outlive the process.
    var durable: ScheduleRow {
        var row = self
        row.entry.conditions.subtract(.transient)
        row.details = EntryDetails(
            mark: details.mark, notBefore: details.notBefore, dependency: details.dependency, displacedBy: details.displacedBy,
            deduplicationKey: details.deduplicationKey, completedAt: details.completedAt)
        return row
    }
}
