/// A value that refers to one session: its ID, its handle, or a ``SessionReference``.
public protocol SessionReferenceConvertible: Sendable {
    /// The reference to the session.
    var reference: SessionReference { get }
}

/// A reference to one session, by its ID or its index.
public enum SessionReference: Hashable, Sendable, Codable, SessionReferenceConvertible {
    /// The session with this ID, at any index.
    case id(SessionID)

    /// The session that is at this index when the call takes effect.
    ///
    /// `expecting` is the ``QueueStatus/orderRevision`` at which the index was read. If the order has changed since then, the call throws
    /// ``QueueError/Code/staleOrder`` instead of affecting another session.
    case index(Int, expecting: UInt64? = nil)

    /// The reference itself.
    public var reference: SessionReference { self }
}

extension SessionID: SessionReferenceConvertible {
    /// The session with this ID.
    public var reference: SessionReference { .id(self) }
}

extension SessionReferenceConvertible where Self == SessionReference {
    /// The session at an index, for a call such as `queue.run(.at(3))`; see ``SessionReference/index(_:expecting:)``.
    public static func at(_ index: Int, expecting: UInt64? = nil) -> SessionReference { .index(index, expecting: expecting) }
}

/// A group of sessions that an operation applies to. Drafts belong only to `.state(.draft)`, and to lists of IDs.
public enum SessionGroup: Hashable, Sendable, Codable {
    /// All sessions.
    case all
    /// All sessions of an account.
    case account(String)
    /// All sessions with a tag.
    case tag(String)
    /// All sessions in a state, for example `.state(.paused)`.
    case state(SessionState)
    /// The sessions with these IDs.
    case sessions([SessionID])
}

extension SessionGroup {
    /// All failed sessions: `.state(.failed)`.
    public static var failed: SessionGroup { .state(.failed) }

    /// All completed sessions: `.state(.completed)`.
    public static var completed: SessionGroup { .state(.completed) }

    /// All cancelled sessions: `.state(.cancelled)`.
    public static var cancelled: SessionGroup { .state(.cancelled) }
}

/// The destination of a moved session.
public enum MoveDestination: Hashable, Sendable, Codable {
    /// The index of the session, or of the first session of a group, after the move: from 0 to the last index.
    ///
    /// `expecting` is the ``QueueStatus/orderRevision`` at which the index was read. If the order has changed since then, the call throws
    /// ``QueueError/Code/staleOrder`` instead of moving the session elsewhere.
    case index(Int, expecting: UInt64? = nil)
    /// Directly before another session.
    case before(SessionID)
    /// Directly after another session.
    case after(SessionID)
    /// The front of the queue.
    case front
    /// The end of the queue.
    case end
}

/// How ``TransferQueue/stop(_:deadline:)`` treats running sessions.
public enum StopMode: String, Hashable, Sendable, Codable {
    /// Running sessions are interrupted. Their checkpoints are saved.
    case interrupt
    /// Running sessions may finish. No session starts.
    case drain
}

/// The result of stopping the queue.
public enum StopResult: String, Hashable, Sendable, Codable {
    /// No session was interrupted, or the queue was already stopped.
    case drained
    /// At least one session was interrupted.
    case interrupted
    /// The queue was started again before the stop was complete.
    case restarted
}
