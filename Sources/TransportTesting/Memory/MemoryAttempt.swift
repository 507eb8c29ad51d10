public import TransferCore

/// One attempt of a ``MemoryTransport``.
public struct MemoryAttempt: Sendable {
    /// The end of an attempt.
    public enum Outcome: Hashable, Sendable {
        /// The file is complete.
        case completed
        /// It threw this error.
        case failed(TransferError)
        /// It threw a `CancellationError`.
        case cancelled
        /// It threw another error, with this description: an error of the reporter.
        case failedOtherwise(String)
    }

    /// The ID of the transfer.
    public let transferID: String
    /// The number of the attempt for that ID.
    public let number: Int
    /// The remote name.
    public let path: RemotePath
    /// The endpoint.
    public let endpoint: Endpoint
    /// The checkpoint from which it resumed.
    public let checkpoint: Checkpoint?
    /// The position in the file of its first byte: the number of bytes that the other end had, or, for a download, that were synced before.
    public internal(set) var startOffset: Int64
    /// The number of bytes that it moved so far.
    public internal(set) var bytesMoved: Int64 = 0
    /// The end, or nil while it runs.
    public internal(set) var outcome: Outcome?
}
