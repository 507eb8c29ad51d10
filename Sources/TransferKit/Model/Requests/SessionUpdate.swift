public import Foundation
public import TransferCore

/// Changes to a session that has not ended. A value of nil leaves the property unchanged. Changes take effect within a second.
public struct SessionUpdate: Hashable, Sendable, Codable {
    /// A new rate limit of a whole session.
    public enum RateLimit: Hashable, Sendable, Codable {
        /// No limit for the session itself. The limits of its account and of the queue still apply.
        case unlimited
        /// Bytes per second, at least 1.
        case bytesPerSecond(Int64)
    }

    /// The rate limit of the whole session.
    public var rateLimit: RateLimit?
    /// The new tags.
    public var tags: [String]?
    /// The app's new context value, as JSON.
    public var context: Data?
    /// The new retry policy.
    public var retry: RetryPolicy?
    /// The new verification, for files that start later.
    public var verification: Verification?
    /// Whether the session may run while the network is expensive. If false, and the network is expensive, a running session is interrupted.
    public var allowsExpensiveNetwork: Bool?

    /// Creates an update.
    public init(
        rateLimit: RateLimit? = nil, tags: [String]? = nil, context: Data? = nil, retry: RetryPolicy? = nil,
        verification: Verification? = nil,
        allowsExpensiveNetwork: Bool? = nil
    ) {
        self.rateLimit = rateLimit
        self.tags = tags
        self.context = context
        self.retry = retry
        self.verification = verification
        self.allowsExpensiveNetwork = allowsExpensiveNetwork
    }

    /// Checks the update.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`.
    func validate() throws(QueueError) {
        if case .bytesPerSecond(let limit) = rateLimit, limit < 1 {
            throw QueueError(.invalidRequest, "A rate limit must be at least 1 byte per second. Use .unlimited to remove it.")
        }
        try retry?.validate()
        try SessionContext.validate(context)
    }

    /// Whether the update changes any of the ``SessionOptions``.
    var changesOptions: Bool { rateLimit != nil || retry != nil || verification != nil || allowsExpensiveNetwork != nil }
}
