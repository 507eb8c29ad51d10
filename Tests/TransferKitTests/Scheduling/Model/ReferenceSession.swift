import Foundation
import TransferKit

/// All that the reference knows of a session.
struct ReferenceSession {
    /// The order of waiting sessions: lower values start first.
    enum StartPriority: Int {
        /// The app ran or resumed it.
        case now
        /// The app wants it next.
        case next
        /// The one that displaced it let go.
        case letGo
        /// The queue or the process stopped while it ran.
        case interrupted
        case none
    }

    let id: SessionID
    /// The number of the account's row: an account deleted and saved again is another one.
    let account: Int
    /// Counts the sessions ever added.
    let number: Int
    var deduplicationKey: String?
    var tags: Set<String>
    /// Those that it had since the process began.
    var earlierTags: Set<String>
    /// Whether items were added since its run began.
    var hasNewItems = false
    /// Whether it ran since the process began, or while the last one ended.
    var hasBegun = false
    /// The mark of a `run` during the present run, which has moved nothing since; 0 for none.
    var runAgain = 0
    /// What it is, or will be once its run has let go.
    var state: SessionState
    /// The number of the run that has not ended yet.
    var run: UInt64?
    var isToldToEnd = false
    var startPriority = StartPriority.none
    var mark = 0
    var displacedBy: SessionID?
    var stoppedAt: Duration?
    var retryAt: DualInstant?
    var ownRetryAt: DualInstant?
    var spaceAt: Duration?
    var notBefore: Date?
    /// Nil once it is satisfied.
    var dependency: SessionDependency?
    var endedAt: Date?
    /// The same by the date of the opening and the time since, which retention goes by.
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

    var isEnding: Bool { run != nil && isToldToEnd }

    /// The state that a status shows.
    var shownState: SessionState { isEnding ? .running : state }

    var holdsSlot: Bool { run != nil || (state == .paused && displacedBy == nil) }

    /// Whether, in a strict queue, those behind it wait for it.
    var isUnfinished: Bool { !state.isEnded }

    /// Whether its slot is free once its run has let go.
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
    /// The last run there was when somebody answered for it.
    var answeredAt: UInt64 = 0
}
