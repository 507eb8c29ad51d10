/// How a session is run.
public struct SessionOptions: Hashable, Sendable, Codable {
    /// What happens to the rest of a session when one of its items fails for good.
    public enum ItemFailurePolicy: String, Hashable, Sendable, Codable {
        /// The other items go on; the session ends as failed, with the list.
        case `continue`
        /// The session fails at the first.
        case failSession
    }

    /// Names and values told to the server with each file, in a form that the transport decides.
    public var metadata: [String: String]

    /// What happens when an item fails for good.
    public var onItemFailure: ItemFailurePolicy

    /// When and how often failed attempts are repeated.
    public var retry: RetryPolicy

    /// How long an attempt may go on with no byte taken by the network and none confirmed. Default: 60 s.
    public var stallTimeout: Duration

    /// How long the server may take to answer after the last byte of a file was sent. Default: 300 s.
    public var responseTimeout: Duration

    /// Makes options; each has a default.
    public init(
        metadata: [String: String] = [:], onItemFailure: ItemFailurePolicy = .continue, retry: RetryPolicy = RetryPolicy(),
        stallTimeout: Duration = .seconds(60), responseTimeout: Duration = .seconds(300)
    ) {
        self.metadata = metadata
        self.onItemFailure = onItemFailure
        self.retry = retry
        self.stallTimeout = stallTimeout
        self.responseTimeout = responseTimeout
    }
}
