/// The class of a failure. The transport chooses the class, which determines how the queue reacts.
///
/// The list is not exhaustive. The queue treats an unknown class like ``transient``.
public struct FailureClass: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
    /// The name as it is stored and shown.
    public let rawValue: String

    /// Creates a class from a name.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The name.
    public var description: String { rawValue }

    /// A connection reset, a timeout, a stall or a busy server: the queue retries with exponential backoff and jitter.
    public static let transient = FailureClass(rawValue: "transient")
    /// No server at the endpoint's address speaks the transport's protocol: the queue tries the account's next endpoint. If there is no other
    /// endpoint, the queue reacts as for ``transient``.
    public static let unreachable = FailureClass(rawValue: "unreachable")
    /// The server rejects the client's identity: the account is blocked until the user acts.
    public static let credentials = FailureClass(rawValue: "credentials")
    /// The client rejects the server's identity (TLS, host key): the account is blocked until the user acts.
    public static let trust = FailureClass(rawValue: "trust")
    /// The checkpoint's remote content is gone: the queue restarts the file, and fails it if the content is lost again without progress.
    public static let resumeLost = FailureClass(rawValue: "resumeLost")
    /// The local file has changed since the checkpoint.
    public static let sourceChanged = FailureClass(rawValue: "sourceChanged")
    /// The local file vanished or can't be read.
    public static let sourceLost = FailureClass(rawValue: "sourceLost")
    /// This machine lacks disk space, memory, threads or file descriptors.
    public static let noSpace = FailureClass(rawValue: "noSpace")
    /// The server lacks space or quota for the account.
    public static let remoteFull = FailureClass(rawValue: "remoteFull")
    /// The transport or the server does not support a requested feature.
    public static let unsupported = FailureClass(rawValue: "unsupported")
    /// The server's response is invalid: the queue retries twice.
    public static let protocolViolation = FailureClass(rawValue: "protocol")
    /// A retry would fail for the same reason.
    public static let permanent = FailureClass(rawValue: "permanent")
}
