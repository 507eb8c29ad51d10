/// Names one session for a call: by its identity, or by where it is.
public enum SessionReference: Hashable, Sendable, Codable {
    /// The session itself, wherever it is.
    case id(SessionID)

    /// The session at an index at the moment when the call takes effect.
    ///
    /// `expecting` is the ``QueueStatus/orderRevision`` that the index was read at: if the order changed since, the call throws
    /// ``QueueError/Code/staleOrder`` rather than hit another session.
    case index(Int, expecting: UInt64? = nil)
}

/// Names many sessions for a call.
public enum SessionGroup: Hashable, Sendable, Codable {
    /// All sessions.
    case all
    /// All sessions of an account.
    case account(String)
    /// All sessions with a tag.
    case tag(String)
    /// All sessions that failed.
    case failed
    /// These sessions.
    case sessions([SessionID])
}

/// Where a session is moved to.
public enum MoveDestination: Hashable, Sendable, Codable {
    /// The index that it has afterwards, in `0 ..<` the number of sessions.
    ///
    /// `expecting` is the ``QueueStatus/orderRevision`` that the index was read at: if the order changed since, the call throws
    /// ``QueueError/Code/staleOrder`` rather than move to another place.
    case index(Int, expecting: UInt64? = nil)
    /// Directly before another one.
    case before(SessionID)
    /// Directly after another one.
    case after(SessionID)
    /// Index 0.
    case front
    /// The last index.
    case end
}

/// How ``TransferQueue/stop(_:deadline:)`` treats what runs.
public enum StopMode: String, Hashable, Sendable, Codable {
    /// What runs is interrupted; checkpoints are saved.
    case interrupt
    /// What runs may finish; nothing new starts.
    case drain
}

/// What came of a stop of the queue.
public enum StopResult: String, Hashable, Sendable, Codable {
    /// All that ran finished by itself.
    case drained
    /// Something was interrupted.
    case interrupted
    /// The queue was started again before the stop was done.
    case restarted
}
