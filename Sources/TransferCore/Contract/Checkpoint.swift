public import Foundation

/// The data that a transport needs to resume one file at one endpoint.
///
/// The queue does not interpret a checkpoint. It stores the checkpoint with the identity of the source.
public struct Checkpoint: Hashable, Sendable, Codable {
    /// Data in the transport's own format. Can contain a URL that grants access, but never a credential.
    public var data: Data

    /// The number of bytes that this checkpoint covers, from the start of the file. For a file with several segments, a transport can count the
    /// bytes of all segments instead.
    public var confirmed: Int64

    /// The time at which the other end will remove the partial content, if known. The queue only displays this time. The transport asks the server
    /// whether the content still exists.
    public var expiresAt: Date?

    /// Creates a checkpoint.
    public init(data: Data, confirmed: Int64, expiresAt: Date? = nil) {
        self.data = data
        self.confirmed = confirmed
        self.expiresAt = expiresAt
    }
}
