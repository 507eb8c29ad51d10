public import Foundation

/// What a transport needs to go on with one file at one endpoint: opaque to the queue, which stores it with the identity of the source.
public struct Checkpoint: Hashable, Sendable, Codable {
    /// The transport's own bytes. May hold a capability, such as an upload URL, but never a credential.
    public var data: Data

    /// How many bytes of the file, from its start, this checkpoint vouches for.
    public var confirmed: Int64

    /// Makes a checkpoint.
    public init(data: Data, confirmed: Int64) {
        self.data = data
        self.confirmed = confirmed
    }
}
