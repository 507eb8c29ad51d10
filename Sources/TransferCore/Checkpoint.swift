public import Foundation

/// What a transport needs to go on with one file at one endpoint: opaque to the queue, which stores it with the identity of the source.
public struct Checkpoint: Hashable, Sendable, Codable {
    /// The transport's own bytes. May hold a capability, such as an upload URL, but never a credential.
    public var data: Data

    /// How many bytes of the file, from its start, this checkpoint vouches for.
    public var confirmed: Int64

    /// When the other end means to remove what it has, if it said so. The queue shows it and does not act on it: whether something is gone is
    /// found by asking.
    public var expiresAt: Date?

    /// Makes a checkpoint.
    public init(data: Data, confirmed: Int64, expiresAt: Date? = nil) {
        self.data = data
        self.confirmed = confirmed
        self.expiresAt = expiresAt
    }
}
