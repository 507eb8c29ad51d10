import Foundation
public import TransferCore

/// A stream of an earlier process that ended before the stream did, for a session that has not sent it; see ``TransferQueue/unfinishedStreams``.
public struct UnfinishedStream: Hashable, Sendable {
    /// The session that sends it.
    public let session: SessionID
    /// The remote name of the item.
    public let destination: RemotePath
    /// The number of bytes of the stream that are stored or have arrived. The next byte to write is at this offset, counted from 0.
    public let offset: Int64

    let name: Data
}
