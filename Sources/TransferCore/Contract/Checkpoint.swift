public import Foundation

/// The data with which a transport resumes one file at one endpoint.
///
/// It is opaque to the queue, which stores it with the identity of the source.
public struct Checkpoint: Hashable, Sendable, Codable {
    /// Data in a format of the transport. May contain a capability, such as an upload URL, but never a credential.
    public var data: Data

    /// The number of bytes from the start of the file that this checkpoint covers.
    public var confirmed: Int64

    /// The time at which the other end will remove its content, if known. The queue shows it but does not act on it: the transport finds out by a
    /// request.
    public var expiresAt: Date?

    /// Creates a checkpoint.
    public init(data: Data, confirmed: Int64, expiresAt: Date? = nil) {
        self.data = data
        self.confirmed = confirmed
        self.expiresAt = expiresAt
    }
}
