/// What kind of failure an error is. The transport sets the class; the class alone decides what the queue does next.
///
/// The list is open so that it can grow; the queue takes a class that it does not know for ``transient``.
public struct FailureClass: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
    /// The name as it is stored and shown.
    public let rawValue: String

    /// Makes a class of a name.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The name.
    public var description: String { rawValue }

    /// A reset, a time-out, a stall, a busy server: the queue tries again after a growing, random delay.
    public static let transient = FailureClass(rawValue: "transient")
    /// Nothing that speaks this transport answers there: the queue tries the account's next endpoint, else as ``transient``.
    public static let unreachable = FailureClass(rawValue: "unreachable")
    /// The server does not accept who we are: the account is blocked until a person acts.
    public static let credentials = FailureClass(rawValue: "credentials")
    /// We do not accept who the server is (TLS, host key): the account is blocked until a person acts.
    public static let trust = FailureClass(rawValue: "trust")
    /// What the checkpoint refers to is gone: the queue starts that file over, once.
    public static let resumeLost = FailureClass(rawValue: "resumeLost")
    /// The local file is no longer the one that the checkpoint was made of.
    public static let sourceChanged = FailureClass(rawValue: "sourceChanged")
    /// The local file vanished or can't be read.
    public static let sourceLost = FailureClass(rawValue: "sourceLost")
    /// This machine lacks space or descriptors.
    public static let noSpace = FailureClass(rawValue: "noSpace")
    /// The server lacks space or quota for us.
    public static let remoteFull = FailureClass(rawValue: "remoteFull")
    /// The transport or the server can't do what is asked for.
    public static let unsupported = FailureClass(rawValue: "unsupported")
    /// An answer that makes no sense: tried again twice.
    public static let protocolViolation = FailureClass(rawValue: "protocol")
    /// Trying again would give the same answer.
    public static let permanent = FailureClass(rawValue: "permanent")
}
