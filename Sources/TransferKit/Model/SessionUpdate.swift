public import Foundation

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

    /// Makes an update.
    public init(rateLimit: Int64? = nil, tags: [String]? = nil, context: Data? = nil, retry: RetryPolicy? = nil) {
        self.rateLimit = rateLimit
        self.tags = tags
        self.context = context
        self.retry = retry
    }
}
