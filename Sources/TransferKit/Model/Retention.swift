/// How long completed sessions stay in the queue.
public enum Retention: Hashable, Sendable, Codable {
    /// Completed sessions stay until the app removes them.
    case keepAll
    /// Only the given number of the most recently completed sessions stay.
    case count(Int)
    /// Completed sessions stay for the given time after their completion.
    case age(Duration)
}
