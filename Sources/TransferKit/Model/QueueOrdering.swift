/// The policy for the order in which sessions start.
public enum QueueOrdering: String, Hashable, Sendable, Codable {
    /// Sessions start in order, but a session that can't start does not block later sessions.
    case inOrder
    /// One session at a time. No session starts while an earlier session is unfinished: waiting, running, paused or held. Failed and cancelled
    /// sessions don't block later sessions.
    case strict
}
