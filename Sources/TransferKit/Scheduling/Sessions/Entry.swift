package import Foundation
package import TransferCore

/// The scheduler's data about a session. Small, because there may be a million sessions.
package struct Entry: SessionTableElement, Equatable {
    package var id: SessionID
    package var key: SessionKey
    /// The number that determines the session's position: the queue sorts its sessions by rank. Ranks have gaps; see ``Scheduler/rankGap``.
    package var rank: Int64
    package var account: AccountKey
    /// The stored state of the session. When a run is interrupted, this property changes immediately to the state that the session will have after
    /// the run has ended. Until then, the run can still complete or fail the session.
    package var state: SessionState
    package var startPriority = StartPriority.none
    package var conditions: Conditions = []

    package init(id: SessionID, key: SessionKey, rank: Int64, account: AccountKey, state: SessionState) {
        self.id = id
        self.key = key
        self.rank = rank
        self.account = account
        self.state = state
    }

    var isOrdered: Bool { state != .draft }

    /// Whether the session's state is waiting, held or draft. An earlier run of the session may still be ending.
    var isAtRest: Bool { state == .waiting || state == .held || state == .draft }

    /// Whether the session uses a slot. A paused session keeps its slot until another session displaces it. While a run is ending, its session
    /// keeps the slot in any state.
    var holdsSlot: Bool {
        state == .running || conditions.contains(.stopping) || (state == .paused && !conditions.contains(.displaced))
    }

    /// Whether the session's slot becomes free when its run ends.
    var freesSlot: Bool {
        conditions.contains(.stopping) && state != .running && !(state == .paused && !conditions.contains(.displaced))
    }

    /// Whether the session is waiting, has no condition that prevents its start, and has no run that is still ending. The session may still
    /// have to wait for its turn, a slot, its account, the network or free disk space.
    var isEligible: Bool {
        state == .waiting && conditions.isDisjoint(with: Conditions.preventing.union(.stopping))
    }

    /// Whether the session waits only for a point in time. Excludes unreadable sessions: the queue retries them, but the user must act. For
    /// the same reason, excludes sessions that wait for space, unless they check the space again soon.
    var isTimed: Bool {
        let timed = Conditions.timed.union(.noSpace)
        return state == .waiting && !conditions.isDisjoint(with: timed) && !waitsForReleasedSpace
            && conditions.isDisjoint(with: Conditions.preventing.subtracting(timed).union(.unreadable))
    }

    /// Whether the session waits for disk space, memory, threads or file descriptors, called *space* in this file.
    var waitsForSpace: Bool { state == .waiting && conditions.contains(.noSpace) }

    /// Whether the session waits for space that this queue or another program must release first.
    var waitsForReleasedSpace: Bool { waitsForSpace && !conditions.contains(.spaceReleased) }

    /// Whether the session claims the next free slot, because the app ran or resumed it.
    var isClaimant: Bool {
        state == .waiting && startPriority == .now && conditions.isDisjoint(with: .preventing)
    }

    var line: SessionIndex.LineKey { SessionIndex.LineKey(account: account, needsCheapNetwork: conditions.contains(.needsCheapNetwork)) }

    /// The visible state. A session counts as running until its run has ended.
    var shownState: SessionState {
        conditions.contains(.stopping) ? .running : state
    }

    /// The reason why a session starts before the sessions in queue order, if any. Sessions with lower values start first.
    package enum StartPriority: UInt8, Sendable, Codable, Comparable {
        /// The app ran or resumed the session.
        case now = 0
        /// The app requested that the session run next.
        case next = 1
        /// The session was displaced. The session that displaced it has now released the slot.
        case released = 2
        /// The session's run was interrupted, for example because the queue or the process was stopped.
        case interrupted = 3
        /// The session follows the order of the queue.
        case none = 4

        package static func < (left: StartPriority, right: StartPriority) -> Bool { left.rawValue < right.rawValue }
    }

    /// Properties of a session in addition to its state.
    package struct Conditions: OptionSet, Sendable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The session yielded. It waits until another session has started, or until ``EntryDetails/yieldedUntil`` if no other session can
        /// start.
        static let yielded = Conditions(rawValue: 1)
        /// Another session displaced this session: the app ran the other session out of turn, and that session uses this session's slot.
        package static let displaced = Conditions(rawValue: 2)
        /// The session's next attempt is due later.
        static let backoff = Conditions(rawValue: 4)
        /// The session's start time is in the future.
        static let early = Conditions(rawValue: 8)
        /// The session depends on another session that has not ended as required.
        static let dependent = Conditions(rawValue: 16)
        /// This machine lacks the disk space, memory, threads or file descriptors that the session needs.
        static let noSpace = Conditions(rawValue: 32)
        /// The session's run was interrupted and has not ended yet.
        package static let stopping = Conditions(rawValue: 64)
        /// The session was cancelled, and its unfinished uploads and part files are kept.
        package static let keepsPartial = Conditions(rawValue: 128)
        /// The session's transport is connected in the current run; see ``RunEvent/Content/connected``.
        static let connected = Conditions(rawValue: 256)
        /// Items were added, found or reset since the current run began, so another run must follow.
        static let hasNewItems = Conditions(rawValue: 512)

        /// The session must not use an expensive network.
        package static let needsCheapNetwork = Conditions(rawValue: 1024)

        /// The session's last run was abandoned and has not ended. No other run of the session begins before that run has ended.
        static let runNotEnded = Conditions(rawValue: 2048)

        /// The database is damaged, so the session's items can't be read. The session also has the condition ``backoff``.
        static let unreadable = Conditions(rawValue: 4096)

        /// The session may occupy disk space, because it ran in this process, or was running when the last process ended. In a strict queue, also
        /// set if the session has a checkpoint from an earlier process.
        package static let begun = Conditions(rawValue: 8192)

        /// The session has transferred bytes, completed a file, or found or listed a remote folder. Its account, and the options that
        /// determine how files arrive, no longer change.
        package static let hasTransferred = Conditions(rawValue: 16384)

        /// The session waits for space, and checks it again soon, because this queue may have released space since the last check.
        static let spaceReleased = Conditions(rawValue: 32768)

        /// The conditions that prevent a waiting session from starting.
        static let preventing: Conditions = [.yielded, .displaced, .backoff, .early, .dependent, .noSpace, .runNotEnded]
        /// The conditions that end at a point in time.
        static let timed: Conditions = [.yielded, .backoff, .early]
        /// The conditions that end with the process.
        static let transient: Conditions = [
            .yielded, .backoff, .noSpace, .stopping, .connected, .hasNewItems, .runNotEnded, .unreadable, .begun,
            .spaceReleased,
        ]
    }
}

/// Scheduling data that few sessions have, separate from ``Entry`` to keep entries small.
package struct EntryDetails: Sendable, Equatable {
    /// The number of the app's call that gave the session the start priority ``Entry/StartPriority/now`` or ``Entry/StartPriority/next``. Within
    /// these priorities, sessions with higher marks start first.
    package var mark: Int64 = 0
    /// The number of the run that has not ended yet; 0 for none.
    package var run: UInt64 = 0
    /// The mark of a call that requested a run while a run was in progress; 0 if there was no such call, or if the run has fulfilled the
    /// request since. Not stored.
    var runAgainMark: Int64 = 0
    package var retryAt: DualInstant?
    /// The time at which the next attempt would be due if the session did not also wait for probes by other sessions.
    package var ownRetryAt: DualInstant?
    package var notBefore: Date?
    package var dependency: SessionDependency?
    package var displacedBy: SessionKey?
    /// The uptime from which a session that yielded may start again if no other session can start; nil if the session does not wait after a
    /// yield.
    package var yieldedUntil: Duration?
    package var spaceCheckAt: Duration?
    /// Why the session waits for space (``Entry/waitsForSpace``); nil if it does not wait for space.
    package var shortage: TransferError?
    package var deduplicationKey: String?
    /// The steady date (``Scheduler/steadyDate(at:)``) at which the session completed, as stored; nil if the session is not completed.
    package var completedAt: Date?
    /// The same date as ``completedAt``, or the date at which the queue was opened if the stored date is implausible
    /// (``Scheduler/plausible(_:)``). Determines how long the session is kept. Not stored.
    package var keptSince: Date?
    /// The session's ``SessionOptions/deadline``.
    package var deadline: Duration?
    /// The steady date of the first start, from which the deadline is measured; nil before the first start. If the session runs again after
    /// its end, the deadline is measured from the first start after that end.
    package var deadlineFrom: Date?
    /// Whether the deadline has passed. Not stored.
    var isOverdue = false

    /// The steady date at which the deadline passes, in milliseconds since 1970. Nil without a deadline, before the first start, and after the
    /// deadline has passed (``isOverdue``).
    var deadlineEnd: Int64? {
        guard !isOverdue, let deadline, let deadlineFrom else { return nil }
        let (end, overflow) = deadlineFrom.milliseconds.addingReportingOverflow(deadline.nanoseconds / 1_000_000)
        return overflow ? nil : end
    }

    static let none = EntryDetails()
}

/// The stored data of a session that the scheduler needs.
package struct ScheduleRow: Sendable, Equatable {
    package var entry: Entry
    package var details: EntryDetails

    package init(entry: Entry, details: EntryDetails = EntryDetails()) {
        self.entry = entry
        self.details = details
    }

    /// The row as it is stored, without the values that apply only to this process.
    var durable: ScheduleRow {
        var row = self
        row.entry.conditions.subtract(.transient)
        row.details = EntryDetails(
            mark: details.mark, notBefore: details.notBefore, dependency: details.dependency, displacedBy: details.displacedBy,
            deduplicationKey: details.deduplicationKey, completedAt: details.completedAt, deadline: details.deadline,
            deadlineFrom: details.deadlineFrom)
        return row
    }
}

extension NetworkCondition {
    func permits(_ entry: Entry) -> Bool {
        permits(needsCheapNetwork: entry.conditions.contains(.needsCheapNetwork))
    }
}
