/// The class of a failure. It largely determines how the queue reacts. Transports choose the class.
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

    /// A connection reset, a timeout, a stall or a busy server: the queue retries with growing, random delays. After the maximum number of
    /// attempts, it tries the account's next endpoint, or fails the file.
    public static let transient = FailureClass(rawValue: "transient")
    /// No server at the endpoint's address responds in the transport's protocol: the queue tries the account's next endpoint. It retries
    /// the same endpoint if no other is available, or if a checkpoint covers bytes there and the outage is short.
    public static let unreachable = FailureClass(rawValue: "unreachable")
    /// The server rejects the client's identity, or a secret can't be read. The account is blocked until the user acts, or the queue tries the next
    /// endpoint if the account allows this. If the endpoint accepted the credentials before, ``TransferError/Code/forbidden`` fails only the file.
    public static let credentials = FailureClass(rawValue: "credentials")
    /// The client rejects the server's identity (TLS, host key): the account is blocked until the user acts.
    public static let trust = FailureClass(rawValue: "trust")
    /// The bytes that the checkpoint covers are gone, outdated or wrong: the queue restarts the file. Another such error fails the file if it
    /// has made no progress since the last restart, if five restarts brought no new maximum of confirmed bytes, or if a checksum is wrong a
    /// second time.
    public static let resumeLost = FailureClass(rawValue: "resumeLost")
    /// The local file has changed since the queue recorded its identity: the queue fails or restarts the file, depending on the session's
    /// options.
    public static let sourceChanged = FailureClass(rawValue: "sourceChanged")
    /// The local file vanished or can't be read, or the producer of a stream failed: the file fails.
    public static let sourceLost = FailureClass(rawValue: "sourceLost")
    /// This machine lacks disk space, memory, threads or file descriptors: the session waits.
    public static let noSpace = FailureClass(rawValue: "noSpace")
    /// The server lacks space or quota for the account: the session fails.
    public static let remoteFull = FailureClass(rawValue: "remoteFull")
    /// The transport or the server does not support a requested feature: the queue tries the account's next endpoint, or fails the file.
    public static let unsupported = FailureClass(rawValue: "unsupported")
    /// The server's response is invalid: the queue retries twice, then reacts as for ``unreachable``.
    public static let protocolViolation = FailureClass(rawValue: "protocol")
    /// A retry would fail for the same reason: the file fails.
    public static let permanent = FailureClass(rawValue: "permanent")
}
