/// The progress of a file, a session or the queue, in bytes.
public struct TransferProgress: Hashable, Sendable, Codable {
    /// The total size, or nil while it is unknown.
    public var bytesTotal: Int64?

    /// The position up to which the network took bytes. Never decreases within an attempt.
    public var bytesSent: Int64

    /// The position up to which the other end confirmed bytes. Never decreases within a generation.
    public var bytesDone: Int64

    /// Creates a progress value.
    public init(bytesTotal: Int64?, bytesSent: Int64 = 0, bytesDone: Int64 = 0) {
        self.bytesTotal = bytesTotal
        self.bytesSent = bytesSent
        self.bytesDone = bytesDone
    }
}
