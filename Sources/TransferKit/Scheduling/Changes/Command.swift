/// A command to the queue, as a value that can be recorded and replayed.
package enum Command: Sendable, Codable {
    /// Adds or replaces an account, unblocks it, and allows immediate probes of its endpoints. If the account was blocked or its endpoints
    /// have changed, also ends retry delays, as ``retryEndpoints(account:)`` does.
    case saveAccount(Account)
    /// Saves an account if the stored account still equals the first value (nil: no stored account). ``InputResult/isGranted`` shows
    /// whether the account was saved.
    case replaceAccount(Account?, with: Account)
    /// Deletes an account. With `cascade`, first removes the account's sessions; otherwise, fails if the account has sessions.
    case deleteAccount(name: String, cascade: Bool = false)
    /// Unblocks an account. Has the effects of ``retryEndpoints(account:)``, even if the account is not blocked.
    case unblockAccount(name: String)
    /// Allows immediate probes of the account's unavailable endpoints. Ends the retry delays of the account's sessions and of files in its
    /// running sessions.
    case retryEndpoints(account: String)
    /// Sets the maximum number of active sessions of an account, or of the queue if `account` is nil. A nil limit removes the stored limit.
    case setMaxConcurrentSessions(Int?, account: String?)
    /// Sets the rate limit, in bytes per second, of an account, or of the queue if `account` is nil. A nil limit removes the stored limit.
    case setRateLimit(Int64?, account: String?)
    /// Sets the rate-limit timetable of an account, or of the queue if `account` is nil. A nil timetable removes the stored timetable.
    case setTimetable(BandwidthTimetable?, account: String?)
    /// Sets how long completed sessions stay in the queue. Nil removes the stored retention.
    case setRetention(Retention?)
    /// Sets the free space, in bytes, below which no session starts. Nil removes the stored minimum.
    case setDiskFloor(Int64?)
    /// Adds sessions at an index, or at the end if the index is nil. Unless all drafts are duplicates of existing sessions, fails if
    /// `expecting` is given and is not the current revision of the order.
    case enqueue([SessionDraft], at: Int? = nil, expecting: UInt64? = nil, isHeld: Bool = false)
    /// Stores sessions as drafts, which are not in the order of the queue.
    case saveDrafts([SessionDraft])
    case addItems(SessionReference, [ItemDraft])
    /// Stores the progress that another queue made on the files of a draft, in the order in which that queue reported the progress.
    case addProgress(SessionReference, [FileProgress])
    /// Removes items whose transfer has not begun, and adds items at the end of the session. Fails if an item to remove has changed since
    /// the caller read it.
    case replaceItems(ItemSelection, ReplaceableItems, with: [ItemDraft], in: SessionReference)
    case perform(SessionOperation, SessionTarget)
    /// Quarantines a session whose rows can't be read or changed; the string is the reason. The session leaves the queue, and its rows are kept.
    case quarantine(SessionID, String)
    /// Removes a session that another queue will resume. Keeps the session's unfinished uploads and part files. Fails if a run of the session
    /// has not ended.
    case withdraw(SessionID)
    case setNetwork(NetworkCondition)
    /// This machine has a new route, so servers that could not be reached may now be reachable.
    case newRoute
    case start
    case stop(StopMode, deadline: Duration? = nil)
}

/// The sessions that an operation applies to.
package enum SessionTarget: Sendable, Codable, Hashable {
    /// One session. If its state does not permit the operation, the command fails.
    case one(SessionReference)
    /// A group of sessions. Sessions whose state does not permit the operation are skipped.
    case group(SessionGroup)
    /// Members of a group that were looked up before the command was sent. Sessions that have been removed or have left the group since then are
    /// skipped.
    case found([SessionID], of: SessionGroup)
    /// A later part of a large group, or any part if the operation is a move. `mark` is the ``InputResult/Part/mark`` of the first part; a
    /// move ignores it.
    case more([SessionID], of: SessionGroup, mark: Int64)
}

/// The result of an input, such as a command or a request for a probe (``RunEvent/Content/probe(_:)``).
package struct InputResult: Sendable, Equatable {
    /// The added, changed or removed sessions. `enqueue` returns one session for each draft: the new session, or the session that the
    /// draft duplicates.
    package var sessions: [SessionID] = []
    /// The members of ``sessions`` that a pause put on hold, because they were waiting. Running sessions become paused instead.
    package var held: [SessionID] = []
    /// For a probe: whether the run may contact the endpoint. For ``Command/replaceAccount(_:with:)``: whether the account was saved.
    package var isGranted = false
    package var part = Part()

    /// The values that one part of a large group passes to the command for the next part (``SessionTarget/more(_:of:mark:)``).
    package struct Part: Sendable, Equatable {
        /// The mark that the operation gave to sessions of the group; see ``EntryDetails/mark``.
        package var mark: Int64 = 0
        /// The last session of the part, in the order of the queue.
        package var last: SessionID?

        package init() {}
    }

    package init(sessions: [SessionID] = [], held: [SessionID] = []) {
        self.sessions = sessions
        self.held = held
    }
}
