import Foundation
import TransferKit

/// Everything that the reference knows about a session.
struct ReferenceSession {
    /// The order of waiting sessions: lower values start first.
    enum StartPriority: Int {
        /// The app ran or resumed it.
        case now
        /// The app wants it next.
        case next
        /// The session that displaced it made room again.
        case released
        /// The queue or the process stopped while it ran.
        case interrupted
        case none
    }

    let id: SessionID
    /// The number of the account's row: an account that is deleted and saved again is another one.
    let account: Int
    /// Counts the sessions ever added.
    let number: Int
    var deduplicationKey: String?
    var tags: Set<String>
    /// Those since the process began.
    var earlierTags: Set<String>
    /// Whether items were added since its run began.
    var hasNewItems = false
    /// Whether it ran since the process began, or while the last one ended.
    var hasBegun = false
    /// The mark of a `run` during the current run, which has moved nothing since; 0 for none.
    var runAgain = 0
    /// The state that it has, or will have once its run has ended.
    var state: SessionState
    /// The number of the run that has not ended yet.
    var run: UInt64?
    var isStopRequested = false
    var startPriority = StartPriority.none
    var mark = 0
    var displacedBy: SessionID?
    var yieldedAt: Duration?
    var retryAt: DualInstant?
    var ownRetryAt: DualInstant?
    var spaceAt: Duration?
    var notBefore: Date?
    /// Nil once it is satisfied.
    var dependency: SessionDependency?
    var endedAt: Date?
    /// The same, computed from the date of the opening and the time since. Retention uses it.
    var keptSince: Date?
    var allowsExpensiveNetwork: Bool

    init(_ draft: SessionDraft, account: Int, number: Int, isHeld: Bool) {
        self.number = number
        id = draft.id
        self.account = account
        deduplicationKey = draft.deduplicationKey
        tags = Set(draft.tags)
        earlierTags = tags
        state = isHeld ? .held : .waiting
        notBefore = draft.notBefore
        dependency = draft.dependency
        allowsExpensiveNetwork = draft.options.allowsExpensiveNetwork
    }

    var isEnding: Bool { run != nil && isStopRequested }

    /// The state that a status shows.
    var shownState: SessionState { isEnding ? .running : state }

    var holdsSlot: Bool { run != nil || (state == .paused && displacedBy == nil) }

    /// Whether, in a strict queue, later sessions wait for it.
    var isUnfinished: Bool { !state.isEnded }

    /// Whether its slot is free once its run has ended.
    var freesSlot: Bool { isEnding && state != .running && !(state == .paused && displacedBy == nil) }

    /// Clears all marks that determine when the session resumes.
    mutating func clearLane() {
        startPriority = .none
        mark = 0
    }
}

/// An account as the reference knows it.
struct ReferenceAccount {
    let number: Int
    var account: Account
    var isBlocked = false
    /// The last run at the time of the latest answer for it.
    var answeredAt: UInt64 = 0
}
