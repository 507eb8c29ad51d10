public import TransferCore

/// One attempt of a ``MemoryTransport``.
public struct MemoryAttempt: Sendable {
    /// The outcome of an attempt.
    public enum Outcome: Hashable, Sendable {
        /// The file is complete.
        case completed
        /// The attempt threw this error.
        case failed(TransferError)
        /// The attempt threw a `CancellationError`.
        case cancelled
        /// The attempt threw an error of another type, for example from the reporter. The text describes the error.
        case failedOtherwise(String)
    }

    /// The ID of the transfer; see ``/TransferCore/FileAttempt/transferID``.
    public let transferID: String
    /// The number of the attempt; see ``/TransferCore/FileAttempt/number``.
    public let number: Int
    /// The remote name of the file.
    public let path: RemotePath
    /// The endpoint that the attempt used.
    public let endpoint: Endpoint
    /// The checkpoint from which the attempt resumed; nil if it began at byte 0.
    public let checkpoint: Checkpoint?
    /// The position in the file at which the attempt began. Earlier bytes were already at the other end or, for a download, synced to the disk.
    public internal(set) var startOffset: Int64
    /// The number of bytes that the attempt has moved so far.
    public internal(set) var bytesMoved: Int64 = 0
    /// The outcome of the attempt; nil while the attempt is running.
    public internal(set) var outcome: Outcome?
}
