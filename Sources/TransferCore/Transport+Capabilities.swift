/// A transport that can remove what a cancelled upload left at its endpoint.
public protocol PartialDiscarding: Transport {
    /// Removes the partial content that a checkpoint refers to. Content that is already gone counts as removed.
    ///
    /// The queue calls it outside the slots, from a task of its own, and again later if it throws.
    ///
    /// - Throws: A ``TransferError``; the class ``FailureClass/unsupported`` means that the server will never do it.
    func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws
}

/// A transport that can say whether an endpoint makes sense, without asking anybody.
public protocol EndpointValidating: Transport {
    /// Checks an endpoint's address, settings and kinds of credentials, as an attempt would before it connects.
    ///
    /// The queue calls it when an account is saved, on the caller's executor, so that a misspelt setting is told there and not by a session.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/permanent`` or ``FailureClass/unsupported``.
    func validate(_ endpoint: Endpoint) throws(TransferError)
}

/// A transport that can say whether an endpoint can do what a session wants of it, without asking anybody.
public protocol SessionValidating: Transport {
    /// Checks a session's options, as an attempt would before it connects: what metadata and headers can be carried, and which settings make sense.
    ///
    /// The queue calls it on its own and on its callers' executors, before a session is stored and before its options or items change, so that
    /// what can't be done is told there and not when the session runs. An item with a place at the server is asked about with its
    /// ``AttemptOptions/uploadURL``.
    ///
    /// - Throws: A ``TransferError``: of the class ``FailureClass/unsupported`` for what another endpoint of the account may be able to do; of the
    ///   class ``FailureClass/permanent`` for what would fail the session's files wherever else they may go, which refuses the session. Its
    ///   message names the thing and says what to do, and is not followed by any other.
    func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError)
}

/// A transport whose endpoints keep files by their remote names, so that two files with one name meet there.
///
/// A transport that does not conform keeps such files apart.
public protocol FileNaming: Transport {
    /// Decides what happens to two files that have one remote name at an endpoint.
    ///
    /// The queue calls it on its callers' executors, before a session is stored and before items are added to one. It refuses files that would
    /// be lost.
    ///
    /// - Parameters:
    ///   - options: What the session asks for.
    ///   - endpoint: One of its account's.
    func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash
}

/// What happens to two files that have one remote name.
public enum NameClash: Hashable, Sendable {
    /// The endpoint keeps both.
    case keptApart
    /// The second file is refused, and the first one stays.
    case refused
    /// The second file counts as sent, and the first one stays.
    case leftOut
    /// One file can replace the other.
    case replaced
}

/// A transport that can say whether an endpoint answers, without moving a file.
public protocol EndpointChecking: Transport {
    /// Connects to an endpoint and asks what it can do.
    ///
    /// - Throws: A ``TransferError`` of the class that an attempt would have met.
    func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport
}

/// What a server says of itself.
public struct EndpointReport: Hashable, Sendable {
    /// The protocol's version that was agreed on.
    public var version: String?

    /// What the server offers, in its own words.
    public var features: [String]

    /// The largest file that it takes, in bytes; nil if it does not say.
    public var maximumSize: Int64?

    /// Its other limits, by the protocol's names for them, such as `packet` in bytes; empty if it has none, or does not say.
    public var limits: [String: Int64]

    /// The fingerprint of the key that it proved to have, as people compare it; nil where the protocol has no such keys.
    public var hostKeyFingerprint: String?

    /// How long one request and its answer took.
    public var latency: Duration

    /// Makes a report.
    public init(
        version: String? = nil, features: [String] = [], maximumSize: Int64? = nil, limits: [String: Int64] = [:],
        hostKeyFingerprint: String? = nil, latency: Duration
    ) {
        self.version = version
        self.features = features
        self.maximumSize = maximumSize
        self.limits = limits
        self.hostKeyFingerprint = hostKeyFingerprint
        self.latency = latency
    }
}
