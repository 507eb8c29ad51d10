/// How long completed sessions stay in the queue.
public enum Retention: Hashable, Sendable, Codable {
    /// Completed sessions stay until the app removes them.
    case keepAll
    /// Only the most recently completed sessions stay, up to the given number, which is at least 0.
    case count(Int)
    /// Completed sessions stay for the given time after their completion: 0 s to a hundred years.
    case age(Duration)
}

extension Retention {
    /// A hundred years.
    static let maximumAge = Duration.seconds(3_155_760_000)

    /// Checks the number and the time.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`.
    package func validate() throws(QueueError) {
        let isValid =
            switch self {
            case .keepAll: true
            case .count(let count): count >= 0
            case .age(let age): (.zero...Self.maximumAge).contains(age)
            }
        guard isValid else {
            throw QueueError(.invalidRequest, "A retention must be at least 0 sessions, or 0 seconds to a hundred years.")
        }
    }
}
