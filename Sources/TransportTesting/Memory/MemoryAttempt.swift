public import TransferCore

/// One attempt that a ``MemoryTransport`` was asked for.
public struct MemoryAttempt: Sendable {
    /// How an attempt ended.
    public enum Outcome: Hashable, Sendable {
        /// The file is complete.
        case completed
        /// It threw this error.
        case failed(TransferError)
        /// It threw a `CancellationError`.
        case cancelled
        /// It threw another error, described here: one that the reporter threw at it.
        case failedOtherwise(String)
    }

    /// The life of the transfer that it belongs to.
    public let transferID: String
    /// Which attempt of that life it was said to be.
    public let number: Int
    /// The remote name.
    public let path: RemotePath
    /// Where to.
    public let endpoint: Endpoint
    /// The checkpoint that it was given.
    public let checkpoint: Checkpoint?
    /// The position in the file from which it moved bytes: what the other end had of the checkpoint's upload; of a download, what was received
    /// and synced before.
    public internal(set) var startOffset: Int64
    /// How many bytes it moved so far.
    public internal(set) var bytesMoved: Int64 = 0
    /// How it ended, or nil while it runs.
    public internal(set) var outcome: Outcome?
}
