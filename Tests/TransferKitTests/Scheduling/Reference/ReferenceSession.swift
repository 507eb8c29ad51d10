import Foundation
import TransferKit

struct ReferenceSession {
    /// The order of waiting sessions: lower values start first.
    enum StartPriority: Int {
        /// The app called `run` or `resume`.
        case now
        /// The app called `runNext`.
        case next
        /// The session was displaced, and its preemptor has released the slot.
        case released
        /// The session's run was interrupted, for example because the queue or the process was stopped.
        case interrupted
        case none
    }

    let id: SessionID
    /// The number of the account. An account that is deleted and saved again gets another number.
    var account: Int
    /// The session's number in the order in which sessions were added, from 1.
    let number: Int
    var deduplicationKey: String?
    var tags: Set<String>
    /// All tags that the session has had since the process began.
    var earlierTags: Set<String>
    /// Whether items were added, or the session was retried, after the current run began.
    var hasNewItems = false
    /// Whether the session has run since the process began, or was running when the previous process ended.
    var hasBegun = false
    /// Whether the session has transferred bytes, so that its account is fixed.
    var hasTransferred = false
    /// The number of the operation that called `run` during the current run, if the run has made no progress since then; otherwise 0.
    var runAgainMark = 0
    /// The session's state. While a run is stopping, this is the state after the run's end, unless the run still completes or fails the session.
    var state: SessionState
    /// The number of the run in progress, if any.
    var run: UInt64?
    var isStopRequested = false
    var startPriority = StartPriority.none
    /// The number of the operation that set the priority. Among sessions with the priority `now`, or `next`, the highest mark starts first.
    var mark = 0
    var displacedBy: SessionID?
    var yieldedAt: Duration?
    var retryAt: DualInstant?
    /// The time at which the next attempt would be due if the session did not also wait for probes by other sessions.
    var ownRetryAt: DualInstant?
    var spaceAt: Duration?
    /// Whether the session waits for space, and will check the space again soon.
    var isSpaceReleased = false
    var notBefore: Date?
    /// The unsatisfied dependency, if any.
    var dependency: SessionDependency?
    var endedAt: Date?
    /// The date for retention: when the session ended, computed from the date at which the queue was opened and the elapsed time.
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

    /// The state that the session's status reports.
    var shownState: SessionState { isEnding ? .running : state }

    var holdsSlot: Bool { run != nil || (state == .paused && displacedBy == nil) }

    /// Whether later sessions of a strict queue wait for this session.
    var isUnfinished: Bool { !state.isEnded && state != .draft }

    /// Whether the end of the run frees the session's slot.
    var freesSlot: Bool { isEnding && state != .running && !(state == .paused && displacedBy == nil) }

    mutating func clearStartPriority() {
        startPriority = .none
        mark = 0
    }
}

struct ReferenceAccount {
    let number: Int
    var account: Account
    var isBlocked = false
    /// The number of the latest run when the app last saved or unblocked the account. Runs up to this number can't block the account.
    var latestRunAtUnblocking: UInt64 = 0
}
