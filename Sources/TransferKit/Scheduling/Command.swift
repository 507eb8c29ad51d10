/// A verb of the queue, as a value: it can be recorded and replayed.
package enum Command: Sendable, Codable {
    case saveAccount(Account)
    case deleteAccount(name: String, cascade: Bool = false)
    case unblockAccount(name: String)
    /// Endpoints of the account that are left alone are asked once more, at once.
    case retryEndpoints(account: String)
    /// Nil for the whole queue, else an account's own limit.
    case setSessionLimit(Int?, account: String?)
    /// Bytes per second.
    case setRateLimit(Int64?, account: String?)
    /// The index is that of an order of this revision, if one is given.
    case enqueue([SessionDraft], at: Int? = nil, expecting: UInt64? = nil, isHeld: Bool = false)
    case addItems(SessionReference, [ItemDraft])
    case perform(Operation, SessionTarget)
    case setNetwork(NetworkCondition)
    case start
    case stop(StopMode, deadline: Duration? = nil)
}

/// What can be done to a session that exists.
package enum Operation: Sendable, Codable, Hashable {
    /// Now, before all others.
    case run(again: Bool = false)
    case runNext
    case pause
    case resume
    case hold
    case release
    case stop
    case cancel(keepsPartial: Bool = false)
    case retry
    case move(MoveDestination)
    case update(SessionUpdate)
    /// With `isForced`, also when others wait for it.
    case remove(isForced: Bool = false)
    /// Its row can't be read: it is taken out of the order and kept aside.
    case quarantine(String)

    /// What it does to a session, for messages: "it can't be …".
    package var effect: String {
        switch self {
        case .run: "run"
        case .runNext: "made the next one"
        case .pause: "paused"
        case .resume: "resumed"
        case .hold: "held"
        case .release: "released"
        case .stop: "stopped"
        case .cancel: "cancelled"
        case .retry: "tried again"
        case .move: "moved"
        case .update: "changed"
        case .remove: "removed"
        case .quarantine: "set aside"
        }
    }
}

/// Which sessions an operation is meant for.
package enum SessionTarget: Sendable, Codable, Hashable {
    /// One; if the operation makes no sense for its state, the call is refused.
    case one(SessionReference)
    /// Many; those for whose state the operation makes no sense are left out.
    case group(SessionGroup)
    /// Sessions that were found to belong to a group; those that are gone, or belong to it no longer, are left out.
    case found([SessionID], of: SessionGroup)
    /// Further ones of the group that the call before was for, with the mark that it gave.
    case more([SessionID], of: SessionGroup, mark: Int64)
}

/// What a command came to, for its caller.
package struct Answer: Sendable, Equatable {
    /// The sessions that were added or changed; for an enqueueing, one for each draft, which may be one that existed before.
    package var sessions: [SessionID] = []
    /// Those of ``sessions`` that were waiting and are held now, although a pause was asked for.
    package var held: [SessionID] = []
    /// Whether a run may ask the endpoint that it wants to probe.
    package var isGranted = false
    /// For the next part of a group that is worked off in several.
    package var part = Part()

    /// What the parts of a group have in common.
    package struct Part: Sendable, Equatable {
        /// Of all sessions that were marked.
        package var mark: Int64 = 0
        /// The last session that the operation was meant for.
        package var last: SessionID?

        package init() {}
    }

    package init(sessions: [SessionID] = [], held: [SessionID] = []) {
        self.sessions = sessions
        self.held = held
    }
}
