/// How far a file, a session or the queue is. All numbers are bytes.
public struct TransferProgress: Hashable, Sendable, Codable {
    /// The size of all content, or nil while it is unknown.
    public var bytesTotal: Int64?

    /// The position up to which bytes were taken by the network; never decreases within an attempt.
    public var bytesSent: Int64

    /// The position up to which the other end confirmed; never decreases within a generation.
    public var bytesDone: Int64

    /// Makes a progress value.
    public init(bytesTotal: Int64?, bytesSent: Int64 = 0, bytesDone: Int64 = 0) {
        self.bytesTotal = bytesTotal
        self.bytesSent = bytesSent
        self.bytesDone = bytesDone
    }
}
