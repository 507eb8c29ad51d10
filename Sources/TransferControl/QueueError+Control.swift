public import TransferKit

extension QueueError.Code {
    /// No process responds on the socket of the queue. The request was not performed.
    /// See <doc:/transferq/Troubleshooting>.
    public static let ownerUnreachable = Self(rawValue: "ownerUnreachable")
    /// The process that owns the queue exited before it responded. It may or may not have performed the request.
    /// See <doc:/transferq/Troubleshooting>.
    public static let ownerLost = Self(rawValue: "ownerLost")
    /// The process that owns the queue did not respond in time, for example because it was suspended by a signal.
    /// See <doc:/transferq/Troubleshooting>.
    public static let ownerSilent = Self(rawValue: "ownerSilent")
    /// The process that owns the queue already has the maximum number of subscribers and streams. See <doc:/transferq/Troubleshooting>.
    public static let tooManySubscribers = Self(rawValue: "tooManySubscribers")
    /// The request or response is not a valid message, or is too large.
    public static let invalidMessage = Self(rawValue: "invalidMessage")
    /// The other process uses an incompatible version of the protocol. See <doc:/transferq/Troubleshooting>.
    public static let unknownProtocolVersion = Self(rawValue: "unknownProtocolVersion")
}
