public import Foundation
public import TransferCore

/// What to change of a session that is not finished; nil leaves a value as it is. Live within a second.
public struct SessionUpdate: Hashable, Sendable, Codable {
    /// Bytes per second for the whole session; 0 for no limit.
    public var rateLimit: Int64?
    /// The new tags.
    public var tags: [String]?
    /// The app's new value, as JSON.
    public var context: Data?
    /// The new retry policy.
    public var retry: RetryPolicy?
    /// How files that start later are verified.
    public var verification: Verification?
    /// Whether it may run while the network is expensive. One that runs and may not any more is interrupted.
    public var allowsExpensiveNetwork: Bool?

    /// Makes an update.
    public init(
        rateLimit: Int64? = nil, tags: [String]? = nil, context: Data? = nil, retry: RetryPolicy? = nil, verification: Verification? = nil,
        allowsExpensiveNetwork: Bool? = nil
    ) {
        self.rateLimit = rateLimit
        self.tags = tags
        self.context = context
        self.retry = retry
        self.verification = verification
        self.allowsExpensiveNetwork = allowsExpensiveNetwork
    }

    /// - Throws: ``QueueError`` with the code `invalidRequest`.
    func validate() throws(QueueError) {
        guard rateLimit ?? 0 >= 0 else {
            throw QueueError(.invalidRequest, "A rate limit is at least 1 byte per second, or 0 for no limit.")
        }
        try retry?.validate()
        try SessionContext.validate(context)
    }

    /// Whether anything of the ``SessionOptions`` is to be changed.
    var changesOptions: Bool { rateLimit != nil || retry != nil || verification != nil || allowsExpensiveNetwork != nil }
}
