/// How long completed sessions stay in the queue.
public enum Retention: Hashable, Sendable, Codable {
    /// Until the app removes them.
    case keepAll
    /// The given number of sessions that completed last.
    case count(Int)
    /// For the given time after they completed.
    case age(Duration)
}
