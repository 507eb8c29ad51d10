import Foundation
public import TransferCore

/// An incomplete stream of an earlier process, whose item is not completed; see ``TransferQueue/unfinishedStreams``.
public struct UnfinishedStream: Hashable, Sendable {
    /// The session of the item.
    public let session: SessionID
    /// The remote name of the item.
    public let destination: RemotePath
    /// The offset of the next byte to write, from 0. All earlier bytes are stored in the storage folder or confirmed by the server.
    public let offset: Int64

    /// The name of the stream's file in the storage folder.
    let name: Data
}
