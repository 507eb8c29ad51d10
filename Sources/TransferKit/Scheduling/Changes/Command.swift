/// A command to the queue, as a value that can be recorded and replayed.
package enum Command: Sendable, Codable {
    case saveAccount(Account)
    /// Saves an account unless it has changed: the first value is the account as the caller read it, or nil if it did not exist.
    /// ``Answer/isGranted`` shows whether the account was saved.
    case replaceAccount(Account?, with: Account)
    case deleteAccount(name: String, cascade: Bool = false)
    case unblockAccount(name: String)
    /// Allows probes of the account's unavailable endpoints now.
    case retryEndpoints(account: String)
    /// The limit of an account, or of the queue if `account` is nil. A nil limit removes the stored limit.
    case setSessionLimit(Int?, account: String?)
    /// The limit of an account, or of the queue if `account` is nil, in bytes per second.
    case setRateLimit(Int64?, account: String?)
    /// Adds sessions at an index. If a revision is given, the index refers to the order of that revision.
    case enqueue([SessionDraft], at: Int? = nil, expecting: UInt64? = nil, isHeld: Bool = false)
    case addItems(SessionReference, [ItemDraft])
    case perform(SessionOperation, SessionTarget)
    /// Quarantines a session whose rows can't be read or changed, with the reason. The session leaves the order, and its rows are kept.
    case quarantine(SessionID, String)
    case setNetwork(NetworkCondition)
    case start
    case stop(StopMode, deadline: Duration? = nil)
}

/// The sessions that an operation applies to.
package enum SessionTarget: Sendable, Codable, Hashable {
    /// One session. If its state does not permit the operation, the call fails.
    case one(SessionReference)
    /// A group of sessions. Sessions whose state does not permit the operation are skipped.
    case group(SessionGroup)
    /// Sessions that were resolved as members of a group. Sessions that were removed or have left the group are skipped.
    case found([SessionID], of: SessionGroup)
    /// Further sessions of the group of the previous call, with the mark that the previous call returned.
    case more([SessionID], of: SessionGroup, mark: Int64)
}

/// The result of a command for its caller.
package struct Answer: Sendable, Equatable {
    /// The added or changed sessions. After an enqueueing, one session for each draft: the new session, or the existing session that the draft
    /// duplicates.
    package var sessions: [SessionID] = []
    /// The sessions in ``sessions`` that a pause held, because they were waiting.
    package var held: [SessionID] = []
    /// Whether a run may probe an endpoint, or whether an account was replaced.
    package var isGranted = false
    /// The data for the next part of a group that is processed in several parts.
    package var part = Part()

    /// Values that the parts of a group share.
    package struct Part: Sendable, Equatable {
        /// The mark that the operation gave to sessions of the group; see ``EntryDetails/mark``.
        package var mark: Int64 = 0
        /// The last session that the operation applied to.
        package var last: SessionID?

        package init() {}
    }

    package init(sessions: [SessionID] = [], held: [SessionID] = []) {
        self.sessions = sessions
        self.held = held
    }
}
