/// The policy for the order in which sessions start.
public enum QueueOrdering: String, Hashable, Sendable, Codable {
    /// Sessions start in order, but a session that can't start does not block later sessions.
    case inOrder
    /// One session at a time. No session starts while an earlier session is waiting, running, paused or held. Failed and cancelled sessions
    /// do not block later sessions. <doc:QueueSemantics#Ordering> lists the exceptions.
    case strict
}
