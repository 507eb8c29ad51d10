public import TransferKit

extension QueueError.Code {
    /// No process answers at the socket of the queue. Nothing was asked of any.
    public static let ownerUnreachable = Self(rawValue: "ownerUnreachable")
    /// The process that owns the queue ended before it answered. Whether it did what it was asked for is not known.
    public static let ownerLost = Self(rawValue: "ownerLost")
    /// The process that owns the queue took too long to answer, as one does that was stopped.
    public static let ownerSilent = Self(rawValue: "ownerSilent")
    /// So many processes follow what happens in the queue that no further one can.
    public static let tooManySubscribers = Self(rawValue: "tooManySubscribers")
    /// What was asked, or the answer, is no message of this protocol, or a larger one than allowed.
    public static let invalidMessage = Self(rawValue: "invalidMessage")
    /// The other process speaks another version of the protocol.
    public static let unknownProtocolVersion = Self(rawValue: "unknownProtocolVersion")
}
