public import Foundation
public import SystemPackage
public import TransferCore

/// The state of an item of a session.
public enum ItemState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Not finished: waiting for its turn, in flight, or waiting for a retry.
    case pending
    /// The file is at its destination: all bytes are confirmed, or the ``SessionOptions/overwrite`` policy kept an existing file.
    case completed
    /// Failed, and not retried automatically. The item's error is the reason.
    case failed
    /// A skipped entry of a folder: a symbolic link that is not followed, or an entry that is neither a file nor a folder, such as a socket. The
    /// item's error describes the entry.
    ///
    /// The session still completes, and its statistics do not count the item.
    case skipped
}

/// A snapshot of one item.
public struct ItemStatus: Hashable, Sendable {
    /// The item's position in its session, from 0. It can change until the session's folders have been read. Some positions may be unused.
    public var position: Int64
    /// The local file or folder. For in-memory data or a stream, the file in the storage folder that holds the bytes until the item is
    /// completed; for a download, the local destination.
    public var source: FilePath
    /// The remote path.
    public var destination: RemotePath
    /// Whether the item is a whole folder that has not been read yet, or could not be read.
    public var isFolder = false
    /// The item's state.
    public var state: ItemState
    /// The size in bytes at the queue's last check; 0 for a folder; nil while the size is unknown, for example before the server reports
    /// the size of a download.
    public var bytesTotal: Int64?
    /// The number of confirmed bytes.
    public var bytesDone: Int64
    /// The URL or address of the remote file, according to the transport; nil until the item is completed.
    public var remoteURL: String?
    /// The verified checksum of the content, as `algorithm:hex`; nil if no checksums were compared.
    public var checksum: String?
    /// When the other end will remove the bytes of an unfinished item; nil if the time is unknown.
    public var partialExpiresAt: Date?
    /// The server's response to the complete file, if the transport keeps it; nil until the item is completed.
    public var answer: ServerResponse?
    /// Warnings about a completed item (``TransferCore/TransferReceipt/warnings``); empty until the item is completed.
    public var warnings: [String]
    /// Why the item failed or was skipped, or why its last attempt failed.
    public var error: TransferError?

    /// Creates a snapshot, for example from the response of another process.
    package init(
        position: Int64, source: FilePath, destination: RemotePath, isFolder: Bool = false, state: ItemState, bytesTotal: Int64?,
        bytesDone: Int64, remoteURL: String? = nil, checksum: String? = nil, partialExpiresAt: Date? = nil,
        answer: ServerResponse? = nil, warnings: [String] = [], error: TransferError? = nil
    ) {
        self.position = position
        self.source = source
        self.destination = destination
        self.isFolder = isFolder
        self.state = state
        self.bytesTotal = bytesTotal
        self.bytesDone = bytesDone
        self.remoteURL = remoteURL
        self.checksum = checksum
        self.partialExpiresAt = partialExpiresAt
        self.answer = answer
        self.warnings = warnings
        self.error = error
    }
}
