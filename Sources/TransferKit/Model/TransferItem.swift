public import SystemPackage
public import TransferCore

/// One thing that a session moves, and the name that it gets.
public struct TransferItem: Hashable, Sendable {
    /// The local file. A relative path is taken from the working directory at the time of the enqueueing.
    public var source: FilePath

    /// The remote name below the endpoint's folder; nil for the source's own last component.
    public var destination: RemotePath?

    /// Makes an item of a file.
    public init(_ source: FilePath, as destination: RemotePath? = nil) {
        self.source = source
        self.destination = destination
    }
}

/// Where one item of a session is in its life.
public enum ItemState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Not finished: waiting for its turn, in flight, or waiting to be tried again.
    case pending
    /// All bytes are confirmed at the destination.
    case completed
    /// Given up; the item's error says why.
    case failed
}

/// A snapshot of one item.
public struct ItemStatus: Hashable, Sendable {
    /// The item's position in its session, from 0.
    public var position: Int64
    /// The local file.
    public var source: FilePath
    /// The remote name.
    public var destination: RemotePath
    /// Where it is in its life.
    public var state: ItemState
    /// The size in bytes, when the queue last looked.
    public var bytesTotal: Int64
    /// Confirmed bytes.
    public var bytesDone: Int64
    /// Where the file is now, as the transport says; nil until it is completed.
    public var remoteURL: String?
    /// The checksum both ends agreed on; nil if none was compared.
    public var checksum: String?
    /// Why it failed, or why its last attempt did.
    public var error: TransferError?
}
